"""The steps of a run: load, train, log, evaluate, save, and stop when a signal asks for it."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, NoReturn

import torch
from torch import nn

from bertcli.folders.run_layout import checkpoint_model
from bertcli.folders.sealed import is_intact
from bertcli.system.errors import UserError
from bertcli.system.signals import Interrupted, Stop, stop_signal
from bertcli.system.terminal import say, working
from bertcli.training import metrics_log, ranks, wrapping
from bertcli.training.checkpoint import (
    CheckpointWriter,
    RunState,
    load_moments_and_counters,
    newest_checkpoint,
)
from bertcli.training.lifecycle import Prepared, Run, steps_between_checkpoints
from bertcli.training.loop import train
from bertcli.training.metrics_log import MetricsLog
from bertcli.training.optimizer import build_optimizer
from bertcli.training.progress import Progress, TrainingClock, describe_scores
from bertcli.training.scores import Scores, StepReport


class DivergedError(UserError):
    """The error of a run whose loss or gradient is not finite any more."""


def take_steps(run: Run[Any], prepared: Prepared) -> Scores | None:
    """Train from the first step, or from the newest checkpoint, to the last step; on every rank.

    Returns the last evaluation; None if there was none, or if the run had ended before.
    """
    model, optimizer, state = _load(run, prepared)
    best = prepared.best
    if best is not None and run.resume:
        ranks.on_first(lambda: best.forget_after(state.step, prepared.is_usable))
    every = max(each.logging.every_steps for each in (prepared.config, run.saved) if each is not None)
    rows = ranks.on_first(lambda: metrics_log.cut_back(run.folder.metrics, state.step, every, report=say))
    ranks.on_first(lambda: run.followers.start(prepared.config.logging.trackers))
    if best is not None:
        best.read(rows)
    is_measured = not prepared.is_evaluated or metrics_log.has_evaluation(rows, state.step)
    if state.step >= prepared.steps and is_measured:
        say(f"{run.folder.root} is finished: {state.step} of {prepared.steps} steps")
        return None
    if best is not None and best.is_settled:
        say(f"{run.folder.root} is finished: stopped early at step {state.step} of {prepared.steps}")
        return None
    for line in prepared.lines():
        say(line)
    config, log_every = prepared.config, prepared.config.logging.every_steps
    fit = Fit(
        run,
        prepared,
        checkpoints=CheckpointWriter(
            layout=run.folder,
            model=prepared.model,
            optimizer=optimizer,
            save_model=prepared.save,
            keep_last=config.checkpoint.keep_last,
            keep_step=prepared.branch_step,
        ),
        log=MetricsLog(run.folder),
        progress=Progress(run.verb, state.step, prepared.steps, log_every=log_every, work=prepared.work),
    )
    reports = train(
        model=model,
        task=prepared.task,
        steps=prepared.micro_batches(state.step),
        optimizer=optimizer,
        settings=prepared.loop,
        first_step=state.step,
        loss_scale=state.loss_scale,
    )
    try:
        return fit.process(reports, state, rows)[1]
    finally:
        fit.checkpoints.wait()  # also after an error: another run may use the folder afterwards
        fit.progress.close()
        fit.log.close()


def _load(run: Run[Any], prepared: Prepared) -> tuple[nn.Module, torch.optim.Optimizer, RunState]:
    """The wrapped model, its optimizer and the counters, loaded from a checkpoint if there is one."""
    own, training = prepared.model, prepared.config.training
    checkpoint = ranks.on_first(lambda: _last_good(run, prepared)) if run.resume else None
    if checkpoint is not None:
        own.load_state_dict(prepared.read_weights(checkpoint_model(checkpoint)))
    if training.compile:
        wrapping.compile_layers(own)
    model = wrapping.distribute(own, training.parallel)
    optimizer = build_optimizer(
        own,
        training.betas,
        training.weight_decay,
        rate_scale=prepared.rate_scale,
        kind=training.optimizer,
        precision=training.precision,
    )
    if checkpoint is not None:
        state = load_moments_and_counters(checkpoint, own, optimizer, report=say)
        return model, optimizer, replace(state, planned=prepared.steps)
    if run.resume:
        say(f"{run.folder.checkpoints} holds no checkpoint to resume from: starting from the first step")
    return model, optimizer, RunState(planned=prepared.steps)


def _last_good(run: Run[Any], prepared: Prepared) -> Path | None:
    """The checkpoint to resume from; None: the run begins with the first step, since none was saved.

    Raises `UserError` if that would train a finished run again.
    """
    best = prepared.best
    find = partial(newest_checkpoint, run.folder, say) if best is None else best.last_good
    checkpoint = find(prepared.is_usable)
    if checkpoint is None and is_intact(run.folder.model):
        raise UserError(
            f"cannot resume: {run.folder.model} is the model of a finished run, and {run.folder.checkpoints} "
            "holds no checkpoint to go on from. Use the model as it is; to train from the first step again, "
            "give --overwrite or another output_dir"
        )
    return checkpoint


@dataclass(frozen=True)
class Fit:
    """Everything that happens around the steps of a run."""

    run: Run[Any]
    prepared: Prepared
    checkpoints: CheckpointWriter
    log: MetricsLog
    progress: Progress

    def process(
        self, reports: Iterator[StepReport], state: RunState, rows: Sequence[Mapping[str, Any]]
    ) -> tuple[RunState, Scores | None]:
        """Process the reports to the end, or until there is a reason to end the run early.

        Returns the final counters and the last evaluation. After a signal to stop (`stop_signal`) on any
        rank, all ranks finish the current step, save a checkpoint and raise `SystemExit` with the usual code.
        A pending evaluation is skipped; with one rank, a running one is interrupted. A resume starts with it.

        Args:
            rows: the rows of the log up to `state`.

        Raises:
            UserError: too many non-finite steps in a row; a checkpoint could not be written.
        """
        prepared = self.prepared
        scores: Scores | None = None
        with stop_signal(self.run.lost) as stop, working(lambda: ""):  # the progress shows steps
            if self._evaluates_after(state.step) and not metrics_log.has_evaluation(rows, state.step):
                scores = self._evaluate(state, stop)
                if scores is None:
                    self._end(ranks.largest(stop.signal), state)
                if self._stops_early(scores, state):
                    return state, scores
            clock = TrainingClock(state)
            for report in reports:
                self.checkpoints.check()
                state = _count(state, report, clock.read())
                is_last = report.step == prepared.steps
                self._report(report, state, clock, is_last=is_last)
                if self._evaluates_after(report.step):
                    scores = self._evaluate(state, stop)
                    is_last = self._stops_early(scores, state) or is_last
                signal = ranks.largest(stop.signal)
                if self._saves_after(report.step) or is_last or signal:
                    self.checkpoints.save(state)
                if is_last or signal:
                    self.checkpoints.finish()
                clock.leave_out()
                if signal:
                    self._end(signal, state)
                if is_last:
                    break
        return state, scores

    def _evaluates_after(self, step: int) -> bool:
        due = self._is_due(step, self.prepared.config.evaluation.every_steps) or step == self.prepared.steps
        return due and step > 0 and self.prepared.is_evaluated

    def _saves_after(self, step: int) -> bool:
        every, epoch = self.prepared.config.checkpoint.every_steps, self.prepared.steps_per_epoch
        every = steps_between_checkpoints(every, epoch) if epoch else every
        return step == self.prepared.branch_step or self._is_due(step, every)

    def _is_due(self, step: int, every: int | None) -> bool:
        """True after each `every` steps; None: after each epoch, or after the last step if epochs are not
        counted."""
        return step % (every or self.prepared.steps_per_epoch or self.prepared.steps) == 0

    def _report(self, report: StepReport, state: RunState, clock: TrainingClock, is_last: bool) -> None:
        """Show, log and check a step. Raises `UserError` if the run diverged."""
        prepared, config = self.prepared, self.prepared.config
        speed = clock.tokens_per_second(state.tokens)
        self.progress.show(report, speed)
        if report.step == 1:
            for line in prepared.health.first_step_warnings(report):
                self.progress.line(line)
        if report.step % config.logging.every_steps == 0 or report.step == 1 or is_last:
            row = metrics_log.train_row(report, state, prepared.steps_per_epoch, tokens_per_second=speed)
            self.log.write(row)
            self.run.followers.check(self.progress.line)
            clock.mark_logged(state.tokens)
        if report.skipped:
            self.progress.line(_bad_step(report, state))
        if state.bad_steps_in_row >= config.training.max_bad_steps:
            self.checkpoints.finish()
            raise _diverged(report, state, self.run)

    def _evaluate(self, state: RunState, stop: Stop) -> Scores | None:
        """Evaluate and log, and keep the model if it is the best so far.

        Returns the scores; None if a signal came.
        """
        prepared, health, best = self.prepared, self.prepared.health, self.prepared.best
        scores = _unless_stopped(prepared.evaluate, stop)
        if scores is None:
            return None
        self.log.write(metrics_log.heldout_row(scores, state, prepared.steps_per_epoch))
        self.progress.line(f"step {state.step} held out: {describe_scores(scores)}")
        for line in health.plateau_warnings(scores, state.step):
            self.progress.line(line)
        if best is not None:
            best.consider(state.step, scores, self._publish)
        return scores

    def _publish(self, folder: Path) -> None:
        """Write the model as it is now to a folder; called on every rank."""
        model = self.prepared.model
        self.run.publish(folder, self.prepared.save, wrapping.full_weights(model))

    def _stops_early(self, scores: Scores | None, state: RunState) -> bool:
        """True if the last evaluation is a reason to end the run before its last step, which is then said."""
        best = self.prepared.best
        if scores is None or best is None or state.step >= self.prepared.steps:
            return False
        reason = best.reason_to_stop(scores)
        if reason is not None:
            self.progress.line(f"stopping early at step {state.step}: {reason}")
        return reason is not None

    def _end(self, signal: int, state: RunState) -> NoReturn:
        self.progress.close()
        self.progress.line(f"stopped after step {state.step}; to go on: {self.run.resume_command}")
        raise SystemExit(128 + signal)


def _unless_stopped(evaluate: Callable[[], Scores], stop: Stop) -> Scores | None:
    if ranks.largest(stop.signal):
        return None
    if ranks.num_ranks() > 1:  # the other ranks would wait for an interrupted one
        return ranks.from_first(evaluate())
    try:
        with stop.breaking_off():
            return evaluate()
    except Interrupted:
        return None


def _count(state: RunState, report: StepReport, seconds: float) -> RunState:
    return replace(
        state,
        step=report.step,
        tokens=state.tokens + report.tokens,
        seconds=round(seconds, 3),
        skipped_steps=state.skipped_steps + report.skipped,
        bad_steps_in_row=state.bad_steps_in_row + 1 if report.skipped else 0,
        loss_scale=report.loss_scale,
    )


def _bad_step(report: StepReport, state: RunState) -> str:
    bad = [f"{metrics_log.term_key(name, 'loss')} {loss}" for name, loss in report.losses.items()]
    scale = f"; the loss scale is now {report.loss_scale.factor:g}" if report.loss_scale else ""
    return (
        f"warning: step {report.step} was skipped, the weights are unchanged: {', '.join(bad)}, gradient "
        f"norm {report.grad_norm} ({state.bad_steps_in_row} in a row, {state.skipped_steps} in total){scale}"
    )


def _diverged(report: StepReport, state: RunState, run: Run[Any]) -> DivergedError:
    key, saved = "model.init_from" if run.verb == "pretrain" else "model", run.folder.steps()
    start = f" from the last checkpoint ({key}: {saved[0]})" if saved else ""
    return DivergedError(
        f"{state.bad_steps_in_row} steps in a row gave a non-finite loss or gradient "
        f"(training.max_bad_steps), the last one step {report.step}; they did not change the weights. "
        f"Start a new run{start} with a lower training.learning_rate, a longer warm-up or "
        "training.precision: fp32"
    )
