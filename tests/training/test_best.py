"""Which model of a run is kept, and when a better one is no longer waited for."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from bertcli.folders.run_layout import RunLayout
from bertcli.system.errors import UserError
from bertcli.training.best import BestModel, goodness, metric_value, metric_values
from bertcli.training.scores import Scores


def scores(loss: float = 0.5, **metrics: Any) -> Scores:
    return Scores({"": loss}, {}, 10, metrics)


def read_best(metric: str, patience: int | None, rows: list[dict[str, Any]]) -> BestModel:
    best = BestModel(RunLayout(Path("nowhere")), metric, patience)
    best.read(rows)
    return best


def consider(best: BestModel, step: int, **metrics: float) -> bool:
    published: list[Path] = []
    best.consider(step, scores(**metrics), published.append)
    return bool(published)


@pytest.mark.parametrize(
    ("metric", "values", "steps"),
    [
        ("accuracy", [0.5, 0.7, 0.6, 0.8], [1, 2, 2, 4]),
        ("accuracy", [0.5, 0.5, 0.7, 0.7], [1, 1, 3, 3]),  # a tie: the earlier
        ("loss", [0.5, 0.7, 0.4, 0.4], [1, 1, 3, 3]),
        ("mean_squared_error", [2.0, 1.0, 3.0], [1, 2, 2]),
        ("loss", [math.nan, 9.0, math.nan, 8.0], [1, 2, 2, 4]),
    ],
)
def test_the_best_is_kept(tmp_path: Path, metric: str, values: list[float], steps: list[int]) -> None:
    best = read_best(metric, None, [])
    for number, (value, step) in enumerate(zip(values, steps, strict=True), start=1):
        assert consider(best, number, **{metric: value}) == (number == step)
        assert best.step == step
        assert not best.is_settled


def test_patience_counts_evaluations_since_the_best(tmp_path: Path) -> None:
    best = read_best("f1", 2, [])
    assert not best.is_settled
    settled = []
    for step, value in enumerate([0.1, 0.1, 0.2, 0.1, 0.2], start=1):
        consider(best, step, f1=value)
        settled.append(best.is_settled)
    assert settled == [False, False, False, False, True]
    assert best.step == 3


def test_a_run_that_is_hopeless_is_settled_also_after_a_resume() -> None:
    def is_hopeless(steps: Sequence[int], values: Sequence[float]) -> bool:
        return (list(steps), list(values)) == ([1, 2], [0.5, 0.4])

    best = BestModel(RunLayout(Path("nowhere")), "f1", None, is_hopeless=is_hopeless)
    assert not best.is_settled
    consider(best, 1, f1=0.5)
    assert best.reason_to_stop(scores(f1=0.5)) is None
    consider(best, 2, f1=0.4)
    assert best.reason_to_stop(scores(f1=0.4)) == "other runs had a better f1 at this point"
    best.read([{"split": "heldout", "step": step, "f1": f1} for step, f1 in ((1, 0.5), (2, 0.4))])
    assert best.is_settled


def test_of_equal_metrics_the_lower_loss_is_kept_also_after_a_resume() -> None:
    seen = [(0.9, 1.6), (1.0, 1.5), (1.0, 0.1), (1.0, 0.2), (0.9, 0.05)]
    best = read_best("accuracy", 3, [])
    found = []
    for step, (accuracy, loss) in enumerate(seen, start=1):
        consider(best, step, loss=loss, accuracy=accuracy)
        rows = [
            {"split": "heldout", "step": number, "accuracy": value, "loss": lost}
            for number, (value, lost) in enumerate(seen[:step], start=1)
        ]
        resumed = read_best("accuracy", 3, rows)
        assert (resumed.step, resumed.is_settled) == (best.step, best.is_settled)
        found.append((best.step, best.is_settled))
    assert found == [(1, False), (2, False), (3, False), (3, False), (3, True)]  # settled by the metric alone


def test_a_resume_knows_it_from_the_log(tmp_path: Path) -> None:
    values: list[float | None] = [None, 0.4, 0.6, 0.5]  # null: it was NaN
    rows = [{"split": "train", "step": 1, "loss": 0.1}] + [
        {"split": "heldout", "step": step, "loss": value} for step, value in enumerate(values, start=1)
    ]
    best = read_best("loss", 2, rows)
    assert best.step == 2
    assert best.is_settled
    consider(best, 5, loss=0.3)
    assert best.step == 5
    assert not best.is_settled


def test_a_model_is_picked_by_numbers_alone() -> None:
    found = scores(0.25, accuracy=0.75, per_class={"a": {"f1": 1.0}}, confusion_matrix=[[1]])
    assert metric_values(found) == {"loss": 0.25, "accuracy": 0.75}
    assert metric_value(found, "accuracy") == 0.75
    with pytest.raises(
        UserError, match=r"task.metric: 'per_class' is not a metric of this task; give one of loss, accuracy$"
    ):
        metric_value(found, "per_class")


def test_errors_and_losses_are_better_when_lower() -> None:
    assert goodness("f1", 0.5) == 0.5
    assert goodness("loss", 0.5) == goodness("mean_squared_error", 0.5) == -0.5
    assert goodness("f1", math.nan) == goodness("loss", math.nan) == goodness("loss", None) == -math.inf


def test_an_evaluation_without_its_metric_is_an_error() -> None:
    with pytest.raises(
        UserError, match=r"the evaluation at step 4 has no number for f1, .* another output_dir"
    ):
        read_best("f1", None, [{"step": 4, "split": "heldout", "loss": 0.5}])
