"""The best evaluation of a run so far, and whether the run should stop early."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from bertcli.errors import UserError
from bertcli.evaluation.evaluate import Scores


class BestEvaluation:
    """Keeps track of the evaluation with the best `metric`; of equal ones, that with the lowest loss.

    Its state is read from the rows of `metrics.jsonl`, which a resume cuts back to its checkpoint, so no
    other state is saved. Steps are repeatable: a better model that was saved after that checkpoint is found
    again.
    """

    def __init__(self, metric: str, patience: int | None, rows: list[dict[str, Any]]):
        """`patience`: evaluations in a row without a better score until `is_settled`; None: never.

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
        """Of the best evaluation, with tables; None if it was before this process started."""

    @property
    def step(self) -> int:
        """Of the best evaluation; there must be one. With a tie of metric and loss, the earlier."""
        return self._steps[self._best]

    @property
    def last_step(self) -> int:
        """Of the last evaluation; there must be one."""
        return self._steps[-1]

    @property
    def is_settled(self) -> bool:
        """Whether the metric was no better in the last `patience` evaluations, whatever their loss."""
        if self._patience is None or not self._steps:
            return False
        metrics = [metric for metric, _ in self._goodness]
        return len(metrics) - 1 - metrics.index(max(metrics)) >= self._patience

    def consider(self, step: int, scores: Scores) -> bool:
        """Add the evaluation at `step`; returns whether it is the best so far."""
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
    """The value of a metric. Raises `UserError` that lists the metrics if it is not one."""
    values = metric_values(scores)
    if metric not in values:
        raise UserError(
            f"task.metric: {metric!r} is not a metric of this task; give one of {', '.join(values)}"
        )
    return values[metric]


def rank(metric: str, values: Mapping[str, Any]) -> tuple[float, float]:
    """Higher is better: by `metric`, and of equal ones by the loss. A value that is missing is worst."""
    return goodness(metric, values.get(metric)), goodness("loss", values.get("loss"))


def goodness(metric: str, value: float | None) -> float:
    """`value`, negated for losses and errors: higher is better. NaN (None in JSON) is worst."""
    if value is None or math.isnan(value):
        return -math.inf
    return -value if metric == "loss" or metric.endswith("_error") else value
