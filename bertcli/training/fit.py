"""The work around the training loop: log, evaluate, save, and stop when a signal asks for it."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NoReturn

from torch import Tensor, nn

from bertcli.batches.share import MicroBatch, Share
from bertcli.config.run import DecidedFinetuning, DecidedPretraining
from bertcli.objectives.base import Task
from bertcli.reports.pretraining_verdict import Health
from bertcli.system.errors import UserError
from bertcli.system.signals import Interrupted, Stop, stop_signal
from bertcli.system.terminal import working
from bertcli.training import ranks
from bertcli.training.best import BestModel
from bertcli.training.checkpoint import CheckpointWriter, RunState
from bertcli.training.loop import LoopSettings
from bertcli.training.metrics_log import MetricsLog, has_evaluation, heldout_row, term_key, train_row
from bertcli.training.progress import Progress, TrainingClock, describe_scores
from bertcli.training.scores import Scores, StepReport

Decided = DecidedPretraining | DecidedFinetuning


@dataclass(frozen=True, kw_only=True)
class Prepared(ABC):
    """What a run trains, and how; nothing in it is left to be decided.

    Attributes:
        config: the decided config.
        share: this rank's share of each step.
        is_evaluated: whether something is held out, so that `evaluate` can be called.
        best: the best model by the held-out scores, which is kept; None: only the last model is.
        branch_step: the step whose checkpoint is kept so that a longer run can continue from it, or None.
        steps_per_epoch: steps of an epoch; None: epochs are not counted.
    """

    config: Decided
    model: nn.Module
    task: Task
    loop: LoopSettings
    share: Share
    steps: int
    is_evaluated: bool
    best: BestModel | None
    branch_step: int | None = None
    steps_per_epoch: int | None = None

    @abstractmethod
    def lines(self) -> Iterator[str]:
        """Lines that say what is trained, and how."""

    @abstractmethod
    def micro_batches(self, first_step: int) -> Iterator[list[MicroBatch]]:
        """This rank's share of each step, from the step of that number on."""

    @abstractmethod
    def evaluate(self) -> Scores:
        """The held-out scores of the model."""

    @abstractmethod
    def save(self, folder: Path, weights: Mapping[str, Tensor]) -> None:
        """Write the model folder of a checkpoint."""

    @abstractmethod
    def read_weights(self, folder: Path) -> Mapping[str, Tensor]:
        """The weights in a model folder: name in the model -> weight."""

    @property
    def health(self) -> Health:
        """The reference values of the losses."""
        return Health()

    def work(self, steps: int) -> float:
        """The work of all steps up to a step, in any unit."""
        return steps

    def rate_scale(self, name: str) -> float:
        """The factor of the learning rate of the parameter with this name."""
        del name
        return 1.0

    def is_usable(self, state: RunState) -> bool:
        """True if a resume may go on from a checkpoint with these counters."""
        del state
        return True


@dataclass(frozen=True)
class Fit:
    """Everything that happens around the steps of a run.

    Attributes:
        lost: a function that says what is lost, and how to go on, if the run ends at once.
        resume_command: the command that resumes this run.
        reason_to_stop: a function called after each evaluation; the reason to end the run early, or None.
    """

    prepared: Prepared
    checkpoints: CheckpointWriter
    log: MetricsLog
    progress: Progress
    lost: Callable[[], str]
    resume_command: str
    reason_to_stop: Callable[[Scores, RunState], str | None] = lambda scores, state: None

    def run(
        self, reports: Iterator[StepReport], state: RunState, rows: Sequence[Mapping[str, Any]]
    ) -> tuple[RunState, Scores | None]:
        """Process the reports to the end, or until `reason_to_stop` returns a reason.

        Returns the final counters and the last evaluation. After a signal to stop (`stop_signal`) on any
        rank, all ranks finish the current step, save a checkpoint and raise `SystemExit` with the usual code.
        A pending evaluation is skipped; with one rank, a running one is interrupted. A resume starts with it.

        Args:
            rows: the rows of the log up to `state`.

        Raises:
            UserError: too many non-finite steps in a row; a checkpoint could not be written.
        """
        prepared, scores = self.prepared, None
        with stop_signal(self.lost) as stop, working(lambda: ""):  # the progress shows steps
            if self._evaluates_after(state.step) and not has_evaluation(rows, state.step):
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
        if step == 0 or not self.prepared.is_evaluated:
            return False
        return step == self.prepared.steps or self._is_due(step, self.prepared.config.evaluation.every_steps)

    def _saves_after(self, step: int) -> bool:
        every = self.prepared.config.checkpoint.every_steps
        return step == self.prepared.branch_step or self._is_due(step, every)

    def _is_due(self, step: int, every: int | None) -> bool:
        """True after each `every` steps; None: after each epoch, if epochs are counted."""
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
            self.log.write(train_row(report, state, prepared.steps_per_epoch, tokens_per_second=speed))
            clock.mark_logged(state.tokens)
        if report.skipped:
            self.progress.line(_bad_step(report, state))
            if state.bad_steps_in_row >= config.training.max_bad_steps:
                self.checkpoints.finish()
                raise _diverged(report, state)

    def _evaluate(self, state: RunState, stop: Stop) -> Scores | None:
        """Evaluate and log; return the scores, or None if a signal came."""
        prepared, health = self.prepared, self.prepared.health
        scores = _unless_stopped(prepared.evaluate, stop)
        if scores is None:
            return None
        self.log.write(heldout_row(scores, state, prepared.steps_per_epoch))
        note = health.heldout_note(state.step)
        self.progress.line(f"step {state.step} held out: {describe_scores(scores)}{note}")
        for line in health.plateau_warnings(scores, state.step):
            self.progress.line(line)
        return scores

    def _stops_early(self, scores: Scores | None, state: RunState) -> bool:
        reason = self.reason_to_stop(scores, state) if scores else None
        if reason is not None:
            self.progress.line(f"stopping early at step {state.step}: {reason}")
        return reason is not None

    def _end(self, signal: int, state: RunState) -> NoReturn:
        self.progress.close()
        self.progress.line(f"stopped after step {state.step}; to go on: {self.resume_command}")
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
    bad = [f"{term_key(name, 'loss')} {loss}" for name, loss in report.losses.items()]
    scale = f"; the loss scale is now {report.loss_scale.factor:g}" if report.loss_scale else ""
    return (
        f"warning: step {report.step} was skipped, the weights are unchanged: {', '.join(bad)}, gradient "
        f"norm {report.grad_norm} ({state.bad_steps_in_row} in a row, {state.skipped_steps} in total){scale}"
    )


def _diverged(report: StepReport, state: RunState) -> UserError:
    return UserError(
        f"{state.bad_steps_in_row} steps in a row gave a non-finite loss or gradient "
        f"(training.max_bad_steps), the last one step {report.step}; they did not change the weights. "
        "The last checkpoint is good: start a new run from it (model.init_from) with a lower "
        "training.learning_rate, a longer warm-up or training.precision: fp32"
    )
