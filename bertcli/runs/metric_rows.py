"""The report of a step or an evaluation -> a row of metrics.jsonl."""

from __future__ import annotations

from typing import Any

from bertcli.checkpoints.checkpoint import RunState
from bertcli.engine.step_report import StepReport
from bertcli.evaluation.evaluate import Scores


def train_row(
    report: StepReport, state: RunState, steps_per_epoch: int | None, tokens_per_second: float
) -> dict[str, Any]:
    """The row of a step; with `steps_per_epoch` also the epoch."""
    return {
        **_place(state, steps_per_epoch),
        "split": "train",
        "loss": report.loss,
        **_terms(report.losses, report.accuracies),
        "learning_rate": report.learning_rate,
        "grad_norm": report.grad_norm,
        "tokens": state.tokens,
        "tokens_per_second": round(tokens_per_second, 1),
        "seconds": state.seconds,
        "skipped_steps": state.skipped_steps,
        **({"loss_scale": report.loss_scale.factor} if report.loss_scale else {}),
    }


def heldout_row(scores: Scores, state: RunState, steps_per_epoch: int | None) -> dict[str, Any]:
    """The row of an evaluation."""
    return {
        **_place(state, steps_per_epoch),
        "split": "heldout",
        "loss": scores.loss,
        **_terms(scores.losses, scores.accuracies),
        **scores.label_of_f1,
        **scores.numbers,
        "tokens": state.tokens,
        "seconds": state.seconds,
    }


def term_key(term: str, what: str) -> str:
    """`mlm_loss`; plain `loss` for a task's only, unnamed term."""
    return f"{term}_{what}" if term else what


def _place(state: RunState, steps_per_epoch: int | None) -> dict[str, Any]:
    if steps_per_epoch is None:
        return {"step": state.step}
    return {"step": state.step, "epoch": round(state.step / steps_per_epoch, 4)}


def _terms(losses: dict[str, float], accuracies: dict[str, float]) -> dict[str, float]:
    named = {term_key(name, "loss"): loss for name, loss in losses.items()}
    return named | {term_key(name, "accuracy"): accuracy for name, accuracy in accuracies.items()}
