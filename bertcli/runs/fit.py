"""Drives the loop: logs, evaluates, saves and stops. The loop itself knows nothing of these."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NoReturn

from bertcli.distributed import ranks
from bertcli.checkpoints.checkpoint import RunState
from bertcli.checkpoints.writer import CheckpointWriter
from bertcli.evaluation.evaluate import Scores
from bertcli.runs.health import References
from bertcli.checkpoints.metrics_log import MetricsLog, has_evaluation
from bertcli.runs.progress import Progress, describe_scores
from bertcli.engine.step_report import StepReport
from bertcli.runs.stop_signal import Interrupted, Stop, stop_signal
from bertcli.errors import UserError


@dataclass(frozen=True)
class FitSettings:
    """When to do what; all in steps."""

    steps: int
    log_every: int
    evaluate_every: int
    save_every: int
    max_bad_steps: int
    steps_per_epoch: int | None = None
    """Where epochs are counted: the rows of the log then say which."""

    def evaluates_after(self, step: int) -> bool:
        return step > 0 and (step % self.evaluate_every == 0 or step == self.steps)


def fit(
    reports: Iterator[StepReport],
    state: RunState,
    rows: Sequence[Mapping[str, Any]],
    settings: FitSettings,
    references: References | None,
    evaluate: Callable[[], Scores] | None,
    checkpoints: CheckpointWriter,
    log: MetricsLog,
    progress: Progress,
    is_enough: Callable[[Scores, RunState], bool] = lambda scores, state: False,
) -> tuple[RunState, Scores | None]:
    """Take the reports of a run to its end, or until `is_enough` says so of an evaluation.

    Returns the final counters and the last evaluation. A signal to stop (`stop_signal`) is heeded after
    the step under way, by all ranks if one receives it: a checkpoint is saved and `SystemExit` raised with
    the usual code. An evaluation is put off then, and broken off where there is one rank; when the run goes
    on, it comes first.

    Args:
        rows: what the log holds of the run up to `state`.

    Raises:
        UserError: too many non-finite steps in a row; a checkpoint could not be written.
    """
    scores = None
    with stop_signal() as stop:

        def evaluate_here(state: RunState) -> bool:
            """Whether that is enough; `scores` is None where it was put off."""
            nonlocal scores
            assert evaluate is not None
            scores = _unless_stopped(evaluate, stop)
            if scores is None:
                return False
            log.write(_heldout_row(scores, state, settings))
            note = references.heldout_note(state.step) if references else ""
            progress.line(f"step {state.step} held out: {describe_scores(scores)}{note}")
            if references and (warning := references.plateau_warning(scores, state.step, settings.steps)):
                progress.line(warning)
            return is_enough(scores, state)

        if evaluate and settings.evaluates_after(state.step) and not has_evaluation(rows, state.step):
            if evaluate_here(state):
                return state, scores
            if scores is None:
                _end(ranks.largest(stop.signal), state, progress)
        started = time.perf_counter() - state.seconds
        tokens_logged, logged_at = state.tokens, time.perf_counter()
        for report in reports:
            checkpoints.check()
            now = time.perf_counter()
            is_last = report.step == settings.steps
            state = _count(state, report, now - started)
            speed = (state.tokens - tokens_logged) / (now - logged_at)
            progress.show(report, speed)
            if report.step == 1 and references and (warning := references.first_step_warning(report)):
                progress.line(warning)
            if report.step % settings.log_every == 0 or report.step == 1 or is_last:
                log.write(_train_row(report, state, settings, speed))
                tokens_logged, logged_at = state.tokens, now
            if report.skipped:
                _warn_of_bad_step(report, state, progress)
                if state.bad_steps_in_row >= settings.max_bad_steps:
                    checkpoints.finish()
                    raise _diverged(report, state)
            if evaluate and settings.evaluates_after(report.step):
                is_last = evaluate_here(state) or is_last
            signal = ranks.largest(stop.signal)
            if report.step % settings.save_every == 0 or is_last or signal:
                checkpoints.save(state)
            if is_last or signal:
                checkpoints.finish()
            # Evaluating and saving are not training: neither the rate nor the seconds count them.
            pause = time.perf_counter() - now
            started, logged_at = started + pause, logged_at + pause
            if signal:
                _end(signal, state, progress)
            if is_last:
                break
    return state, scores


def _unless_stopped(evaluate: Callable[[], Scores], stop: Stop) -> Scores | None:
    if ranks.largest(stop.signal):
        return None
    if ranks.num_ranks() > 1:  # the others would wait for one that broke off
        return ranks.from_first(evaluate())
    try:
        with stop.breaking_off():
            return evaluate()
    except Interrupted:
        return None


def _end(signal: int, state: RunState, progress: Progress) -> NoReturn:
    progress.close()
    progress.line(f"stopped after step {state.step}; --resume goes on from there")
    raise SystemExit(128 + signal)


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


def _warn_of_bad_step(report: StepReport, state: RunState, progress: Progress) -> None:
    bad = [f"{_key(name, 'loss')} {loss}" for name, loss in report.losses.items()] + [
        f"gradient norm {report.grad_norm}"
    ]
    scale = f"; the loss scale is now {report.loss_scale.factor:g}" if report.loss_scale else ""
    progress.line(
        f"warning: step {report.step} was skipped, its weights untouched: {', '.join(bad)} "
        f"({state.bad_steps_in_row} in a row, {state.skipped_steps} in all){scale}"
    )


def _diverged(report: StepReport, state: RunState) -> UserError:
    return UserError(
        f"{state.bad_steps_in_row} steps in a row gave a non-finite loss or gradient "
        f"(training.max_bad_steps), the last one step {report.step}; the weights are those from before. "
        "The last checkpoint is good: go on from it in a new run (model.init_from) with a lower "
        "training.learning_rate, a longer warm-up or training.precision: fp32"
    )


def _train_row(report: StepReport, state: RunState, settings: FitSettings, speed: float) -> dict[str, Any]:
    return {
        **_place(state, settings),
        "split": "train",
        "loss": report.loss,
        **_terms(report.losses, report.accuracies),
        "learning_rate": report.learning_rate,
        "grad_norm": report.grad_norm,
        "tokens": state.tokens,
        "tokens_per_second": round(speed, 1),
        "seconds": state.seconds,
        "skipped_steps": state.skipped_steps,
        **({"loss_scale": report.loss_scale.factor} if report.loss_scale else {}),
    }


def _heldout_row(scores: Scores, state: RunState, settings: FitSettings) -> dict[str, Any]:
    return {
        **_place(state, settings),
        "split": "heldout",
        "loss": scores.loss,
        **_terms(scores.losses, scores.accuracies),
        **scores.numbers,
        "tokens": state.tokens,
        "seconds": state.seconds,
    }


def _place(state: RunState, settings: FitSettings) -> dict[str, Any]:
    if settings.steps_per_epoch is None:
        return {"step": state.step}
    return {"step": state.step, "epoch": round(state.step / settings.steps_per_epoch, 4)}


def _terms(losses: dict[str, float], accuracies: dict[str, float]) -> dict[str, float]:
    named = {_key(name, "loss"): loss for name, loss in losses.items()}
    return named | {_key(name, "accuracy"): accuracy for name, accuracy in accuracies.items()}


def _key(term: str, what: str) -> str:
    """`mlm_loss`; plain `loss` for a task's only, unnamed term."""
    return f"{term}_{what}" if term else what
