"""The best model of a run by a held-out metric, which is kept beside the checkpoints."""

import math
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from bertcli.config.task import TaskSettings
from bertcli.folders.run_layout import RunLayout
from bertcli.folders.sealed import find_damage, is_intact, remove_own
from bertcli.system.errors import UserError
from bertcli.system.terminal import say
from bertcli.training import ranks
from bertcli.training.checkpoint import RunState, free_path, load_state, newest_checkpoint, newest_path
from bertcli.training.metrics_log import read_metrics
from bertcli.training.scores import Scores

IsHopeless = Callable[[int, Sequence[int], Sequence[float]], bool]
"""A function of the steps of the whole run, and of the evaluations so far, by their steps and their
`goodness`: True if the run should end. The same evaluations give the same answer, also after a resume."""


class BestModel:
    """The best model so far, in `checkpoints/best`: by `metric`, and by the loss among equal ones.

    The state is read from the rows of `metrics.jsonl`, which a resume cuts back to its checkpoint, so no
    other state is saved. Steps are repeatable, so a better model that was saved after that checkpoint is
    found again.
    """

    def __init__(
        self,
        folder: RunLayout,
        metric: str,
        patience: int | None = None,
        is_hopeless: Callable[[Sequence[int], Sequence[float]], bool] = lambda steps, scores: False,
    ):
        """Nothing is read yet.

        Args:
            patience: evaluations in a row without a better score until `is_settled`; None: never.
            is_hopeless: an `IsHopeless` of this run, which ends it if other runs are better.
        """
        self._folder, self._metric, self._patience = folder, metric, patience
        self._is_hopeless = is_hopeless
        self.read([])

    def read(self, rows: Sequence[Mapping[str, Any]]) -> None:
        """Take the evaluations in the rows of the log up to the step that the run goes on from.

        Raises `UserError` if an evaluation among `rows` lacks the metric.
        """
        evaluations = [row for row in rows if row["split"] == "heldout"]
        for row in evaluations:
            if not isinstance(row.get(self._metric, ""), int | float | None):
                raise UserError(
                    f"metrics.jsonl: the evaluation at step {row['step']} has no number for {self._metric}, "
                    "so the best model is unknown: the file is damaged; start a new run in another output_dir"
                )
        self._steps = [row["step"] for row in evaluations]
        self._goodness = [sort_key(self._metric, row) for row in evaluations]
        self.scores: Scores | None = None
        """The scores of the best evaluation, with tables; None if it was before this process started."""

    def last_good(self, usable: Callable[[RunState], bool]) -> Path | None:
        """The newest `usable` checkpoint; if the best model is lost or damaged, one before that model.

        Raises `UserError` if the best model is there, but the log with its scores is lost.
        """
        newest = newest_checkpoint(self._folder, say, usable)
        rows = heldout_rows(self._folder.metrics)
        if is_intact(newest_path(self._folder.best)) and not rows:
            raise _lost_evaluations(self._folder)
        if newest is None:
            return None
        rows = [row for row in rows if row["step"] <= load_state(newest).step]
        best = newest_path(self._folder.best)
        damage = find_damage(best) if rows else None
        if damage is None:
            return newest
        lost = BestModel(self._folder, self._metric)
        lost.read(rows)
        step = lost.step
        say(f"warning: {best} is damaged ({damage}); going back to before step {step} to train it again")
        return newest_checkpoint(self._folder, say, lambda state: usable(state) and state.step < step)

    def forget_after(self, step: int, usable: Callable[[RunState], bool]) -> None:
        """Before a run goes on from `step`: remove what it makes again, so that no later resume takes it.

        These are the newer `usable` checkpoints, and the best model if its evaluation was after `step` and no
        earlier one is left in the log.
        """
        for checkpoint in self._folder.steps():
            if is_intact(checkpoint) and (state := load_state(checkpoint)).step > step and usable(state):
                remove_own(checkpoint)
        if not any(row["step"] <= step for row in heldout_rows(self._folder.metrics)):
            remove_own(newest_path(self._folder.best))

    def consider(self, step: int, scores: Scores, publish: Callable[[Path], None]) -> None:
        """Add an evaluation; if it is the best so far, `publish` the model to a folder; on every rank."""
        metric_value(scores, self._metric)
        self._steps.append(step)
        self._goodness.append(sort_key(self._metric, metric_values(scores)))
        if self.step == step:
            self.scores = scores
            publish(ranks.on_first(lambda: free_path(self._folder.best)))

    def reason_to_stop(self, scores: Scores) -> str | None:
        """The reason to end the run early after an evaluation, or None."""
        if not self.is_settled:
            return None
        title = scores.title(self._metric)
        if not self._is_patience_over:
            return f"other runs had a better {title} at this point"
        return f"no better {title} in {self._patience} evaluations (training.early_stopping)"

    def path(self) -> Path:
        """The folder of the best model."""
        return ranks.on_first(lambda: newest_path(self._folder.best))

    @property
    def step(self) -> int:
        """The step of the best evaluation; there must be one. The earlier one wins a tie."""
        return self._steps[self._goodness.index(max(self._goodness))]

    @property
    def last_step(self) -> int:
        """The step of the last evaluation; there must be one."""
        return self._steps[-1]

    @property
    def is_settled(self) -> bool:
        """True if the run may end: it is hopeless, or the last `patience` evaluations did not improve the
        metric; the loss is ignored."""
        if not self._steps:
            return False
        return self._is_hopeless(self._steps, self._metrics) or self._is_patience_over

    @property
    def _metrics(self) -> list[float]:
        return [metric for metric, _ in self._goodness]

    @property
    def _is_patience_over(self) -> bool:
        since = len(self._metrics) - 1 - self._metrics.index(max(self._metrics))
        return self._patience is not None and since >= self._patience


def heldout_rows(metrics: Path) -> list[dict[str, Any]]:
    """The evaluations in a run's log."""
    return [row for row in read_metrics(metrics) if row["split"] == "heldout"]


def _lost_evaluations(layout: RunLayout) -> UserError:
    return UserError(
        f"cannot resume: {layout.metrics} {'has no evaluation' if layout.metrics.exists() else 'is gone'}, "
        f"so that {layout.best} cannot be compared with later models. Restore the file; or keep "
        "the models as they are, and start a new run in another output_dir (--overwrite deletes this one)"
    )


def metric_values(scores: Scores) -> dict[str, float]:
    """The values that can select a model: the loss, and every metric that is a number and not a setting."""
    found = {name: value for name, value in scores.numbers.items() if name not in TaskSettings.model_fields}
    return {"loss": scores.loss} | found


def metric_value(scores: Scores, metric: str) -> float:
    """The value of a metric. Raises a `UserError` that lists the metrics if there is none of this name."""
    values = metric_values(scores)
    if metric not in values:
        raise UserError(
            f"task.metric: {metric!r} is not a metric of this task; give one of {', '.join(values)}"
        )
    return values[metric]


def sort_key(metric: str, values: Mapping[str, Any]) -> tuple[float, float]:
    """A sort key, higher is better: the metric first, then the loss. A missing value is worst."""
    return goodness(metric, values.get(metric)), goodness("loss", values.get("loss"))


def goodness(metric: str, value: float | None) -> float:
    """The value, negated for losses and errors, so that higher is better. NaN (None in JSON) is worst."""
    if value is None or math.isnan(value):
        return -math.inf
    return -value if metric == "loss" or metric.endswith("_error") else value
