"""The best evaluation of a run so far, and whether it is vain to wait for a better one."""

from __future__ import annotations

import math
from typing import Any

from bertcli.errors import UserError
from bertcli.evaluation.evaluate import Scores


class BestEvaluation:
    """Knows which evaluation had the best `metric`.

    What it knows it reads from the rows of `metrics.jsonl`, so a resume, which cuts those back to its
    checkpoint, needs no state besides. Steps are repeatable: a better model saved after that checkpoint
    comes again.
    """

    def __init__(self, metric: str, patience: int | None, rows: list[dict[str, Any]]):
        """`patience`: evaluations in a row without a better score before `is_settled`; None: never.

        Raises `UserError` where an evaluation among `rows` lacks the metric.
        """
        self._metric, self._patience = metric, patience
        evaluations = [row for row in rows if row["split"] == "heldout"]
        self._steps = [row["step"] for row in evaluations]
        for row in evaluations:
            if not isinstance(row.get(metric, ""), int | float | None):
                raise UserError(
                    f"metrics.jsonl: the evaluation at step {row['step']} has no number for {metric}, so "
                    "that the best model cannot be told: the file is damaged; start a new run in another "
                    "output_dir"
                )
        self._goodness = [goodness(metric, row[metric]) for row in evaluations]
        self.scores: Scores | None = None
        """Of the best evaluation, tables and all; None where it was made before this process began."""

    @property
    def step(self) -> int:
        """Of the best evaluation, of which there must have been one; a tie: the earlier."""
        return self._steps[self._best]

    @property
    def is_settled(self) -> bool:
        """Whether the last `patience` evaluations brought nothing better."""
        if self._patience is None or not self._steps:
            return False
        return len(self._steps) - 1 - self._best >= self._patience

    def consider(self, step: int, scores: Scores) -> bool:
        """Take note of the evaluation at `step`; whether it is the best so far."""
        self._steps.append(step)
        self._goodness.append(goodness(self._metric, metric_value(scores, self._metric)))
        if self.step == step:
            self.scores = scores
        return self.step == step

    @property
    def _best(self) -> int:
        return self._goodness.index(max(self._goodness))


def metric_values(scores: Scores) -> dict[str, float]:
    """What a model can be picked by: the loss, and every metric that is a number."""
    return {"loss": scores.loss} | scores.numbers


def metric_value(scores: Scores, metric: str) -> float:
    """The value of a metric. Raises `UserError` naming those there are."""
    values = metric_values(scores)
    if metric not in values:
        raise UserError(f"task.metric: {metric!r} is none of this task's: {', '.join(values)}")
    return values[metric]


def goodness(metric: str, value: float | None) -> float:
    """`value`, its sign turned for losses and errors: higher is better. NaN (None in JSON) is worst."""
    if value is None or math.isnan(value):
        return -math.inf
    return -value if metric == "loss" or metric.endswith("_error") else value
