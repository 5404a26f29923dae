"""The best model of a run so far, and whether it is vain to wait for a better one."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from bertcli.engine.evaluate import Scores
from bertcli.errors import UserError
from bertcli.files import disk_errors, write_folder


class BestModel:
    """Keeps `folder`, the model of the evaluation with the best `metric`.

    What it knows it reads from the rows of `metrics.jsonl`, so a resume, which cuts those back to its
    checkpoint, needs no state besides. Steps are repeatable: a better model saved after that checkpoint
    comes again.
    """

    def __init__(self, folder: Path, metric: str, patience: int | None, rows: list[dict[str, Any]]):
        """`patience`: evaluations in a row without a better score before `is_settled`; None: never."""
        self.folder, self.metric, self._patience = folder, metric, patience
        self._values = [row[metric] for row in rows if row["split"] == "heldout"]

    @property
    def is_settled(self) -> bool:
        """Whether the last `patience` evaluations brought nothing better."""
        if self._patience is None or not self._values:
            return False
        best = self._values.index(max(self._values, key=self._goodness))
        return len(self._values) - 1 - best >= self._patience

    def consider(self, scores: Scores, save_model: Callable[[Path], None]) -> None:
        """Take note of an evaluation, and keep the model if it is the best so far (a tie: the earlier)."""
        value = metric_value(scores, self.metric)
        if not self._values or self._goodness(value) > max(map(self._goodness, self._values)):
            with disk_errors(f"{self.folder}: the best model so far could not be written"):
                write_folder(self.folder, save_model)
        self._values.append(value)

    def _goodness(self, value: float) -> float:
        return -value if self.metric.endswith(("_error", "loss")) else value


def metric_value(scores: Scores, metric: str) -> float:
    """The value of a metric. Raises `UserError` naming those there are."""
    choices = {"loss": scores.loss} | {k: v for k, v in scores.metrics.items() if isinstance(v, float)}
    if metric not in choices:
        raise UserError(f"task.metric: {metric!r} is none of this task's: {', '.join(choices)}")
    return choices[metric]
