"""Evaluation of a model on batches (mean losses and accuracies), and the choice of the best evaluation."""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import nn

from bertcli.batches.share import MicroBatch
from bertcli.objectives.base import Task
from bertcli.system.errors import UserError
from bertcli.system.hardware import Precision, autocast
from bertcli.training import wrapping
from bertcli.training.step_report import TermSums, count_step, weighted_sum


@dataclass(frozen=True)
class Scores:
    """The scores of an evaluation.

    Attributes:
        losses, accuracies: term name -> mean: the sum over all batches, divided once.
        tokens: number of real tokens.
        metrics: the metrics of a task.
        weights: term name -> its factor in the loss; terms that are not listed have 1.
    """

    losses: dict[str, float]
    accuracies: dict[str, float]
    tokens: int
    metrics: Mapping[str, Any] = field(default_factory=dict)
    weights: Mapping[str, float] = field(default_factory=dict)

    @property
    def loss(self) -> float:
        """The weighted sum over terms."""
        return weighted_sum(self.losses, self.weights)

    @property
    def numbers(self) -> dict[str, float]:
        """The metrics that are numbers, not tables."""
        return {name: value for name, value in self.metrics.items() if isinstance(value, float)}

    @property
    def label_of_f1(self) -> dict[str, str]:
        """{"positive_label": LABEL} if `f1` is the F1 of one of two labels; else empty."""
        return {name: value for name, value in self.metrics.items() if name == "positive_label"}

    def title(self, name: str) -> str:
        """The name of a metric for people: `f1 of spam` if it is the F1 of one of two labels."""
        return f"f1 of {self.metrics['positive_label']}" if name == "f1" and self.label_of_f1 else name


@contextmanager
def evaluation_mode(model: nn.Module) -> Iterator[None]:
    """A context without dropout; at its end the model is in training mode again if it was before."""
    was_training = model.training
    model.eval()
    try:
        yield
    finally:
        model.train(was_training)
        wrapping.reshard(model)


@torch.no_grad()
def evaluate(
    model: nn.Module,
    task: Task,
    steps: Iterable[Sequence[MicroBatch]],
    device: torch.device,
    precision: Precision,
) -> Scores:
    """Evaluate this rank's share of all steps without dropout; return the scores over all ranks."""
    sums, tokens = TermSums(), 0
    counts: dict[str, float] = {}
    with evaluation_mode(model):
        for micro_batches in steps:
            step_counts, step_tokens = count_step(task, micro_batches)
            counts = {name: counts.get(name, 0.0) + count for name, count in step_counts.items()}
            tokens += step_tokens
            for _, batch, is_dummy in micro_batches:
                with autocast(precision, device):
                    sums.add(task.terms(model, batch.to(device)), is_dummy)
    losses, accuracies, shares = sums.means(counts)
    return Scores(losses, accuracies, tokens, metrics=shares, weights=sums.weights)


class BestEvaluation:
    """The evaluation with the best `metric`; among equal ones, the one with the lowest loss.

    The state is read from the rows of `metrics.jsonl`, which a resume cuts back to its checkpoint, so no
    other state is saved. Steps are repeatable, so a better model that was saved after that checkpoint is
    found again.
    """

    def __init__(self, metric: str, patience: int | None, rows: list[dict[str, Any]]):
        """Read the state from `rows`.

        `patience`: evaluations in a row without a better score until `is_settled`; None: never.
        Raises `UserError` if an evaluation among `rows` lacks the metric.
        """
        self._metric, self._patience = metric, patience
        evaluations = [row for row in rows if row["split"] == "heldout"]
        self._steps = [row["step"] for row in evaluations]
        for row in evaluations:
            if not isinstance(row.get(metric, ""), int | float | None):
                raise UserError(
                    f"metrics.jsonl: the evaluation at step {row['step']} has no number for {metric}, so the "
                    "best model is unknown: the file is damaged; start a new run in another output_dir"
                )
        self._goodness = [rank(metric, row) for row in evaluations]
        self.scores: Scores | None = None
        """The scores of the best evaluation, with tables; None if it was before this process started."""

    @property
    def step(self) -> int:
        """The step of the best evaluation; there must be one. The earlier one wins a tie."""
        return self._steps[self._best]

    @property
    def last_step(self) -> int:
        """The step of the last evaluation; there must be one."""
        return self._steps[-1]

    @property
    def is_settled(self) -> bool:
        """True if the last `patience` evaluations did not improve the metric; the loss is ignored."""
        if self._patience is None or not self._steps:
            return False
        metrics = [metric for metric, _ in self._goodness]
        return len(metrics) - 1 - metrics.index(max(metrics)) >= self._patience

    def consider(self, step: int, scores: Scores) -> bool:
        """Add the evaluation at `step`; return True if it is the best so far."""
        self._steps.append(step)
        metric_value(scores, self._metric)
        self._goodness.append(rank(self._metric, metric_values(scores)))
        if self.step == step:
            self.scores = scores
        return self.step == step

    @property
    def _best(self) -> int:
        return self._goodness.index(max(self._goodness))


def metric_values(scores: Scores) -> dict[str, float]:
    """The values that can select a model: the loss, and every metric that is a number."""
    return {"loss": scores.loss} | scores.numbers


def metric_value(scores: Scores, metric: str) -> float:
    """The value of a metric. Raises a `UserError` that lists the metrics if there is none of this name."""
    values = metric_values(scores)
    if metric not in values:
        raise UserError(
            f"task.metric: {metric!r} is not a metric of this task; give one of {', '.join(values)}"
        )
    return values[metric]


def rank(metric: str, values: Mapping[str, Any]) -> tuple[float, float]:
    """A sort key, higher is better: the metric first, then the loss. A missing value is worst."""
    return goodness(metric, values.get(metric)), goodness("loss", values.get("loss"))


def goodness(metric: str, value: float | None) -> float:
    """The value, negated for losses and errors, so that higher is better. NaN (None in JSON) is worst."""
    if value is None or math.isnan(value):
        return -math.inf
    return -value if metric == "loss" or metric.endswith("_error") else value
