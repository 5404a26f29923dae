"""Charts: few points that draw the same line, round ticks, everything inside the picture."""

from __future__ import annotations

import math
import random
import re

import pytest

from bertcli.reports.chart import TOP, Curve, Level, plot, spread, thin, tick_labels, ticks
from bertcli.reports.curves import _numbers


@pytest.mark.parametrize("count", [1, 2, 50, 51, 1000, 12_345])
def test_thinning_keeps_the_ends_and_every_extreme(count: int) -> None:
    source = random.Random(count)
    values = [source.gauss(0, 1) for _ in range(count)]
    values[count // 2] = 1e6
    kept = thin(values, 50)
    assert len(kept) <= 50
    assert kept == sorted(set(kept))
    assert {0, count - 1, count // 2, values.index(min(values))} <= set(kept)


def test_spread_has_both_ends_and_never_more_than_asked() -> None:
    assert spread(3, 5) == [0, 1, 2]
    assert spread(100, 4) == [0, 33, 66, 99]


@pytest.mark.parametrize(
    ("low", "high", "labels"),
    [
        (0.0, 9.3, ["0", "2", "4", "6", "8"]),
        (0.55, 0.72, ["0.55", "0.60", "0.65", "0.70"]),
        (0, 1878, ["0", "500", "1,000", "1,500"]),
        (0, 9_380_508, ["0", "2M", "4M", "6M", "8M"]),
        (0, 23_000, ["0", "5k", "10k", "15k", "20k"]),
        (0.0, 1e-4, ["0", "2e-5", "4e-5", "6e-5", "8e-5", "1e-4"]),
        (-1.0, 1.0, ["-1.0", "-0.5", "0.0", "0.5", "1.0"]),
    ],
)
def test_ticks_are_round_numbers(low: float, high: float, labels: list[str]) -> None:
    assert tick_labels(ticks(low, high, 5)) == labels


def places(path: str) -> list[tuple[float, float]]:
    return [(float(x), float(y)) for x, y in re.findall(r"(-?[\d.]+) (-?[\d.]+)", path)]


@pytest.mark.parametrize(
    "points",
    [
        [(1.0, 7.6), (100.0, 6.2), (4000.0, 3.5)],
        [(5.0, 0.5)],
        [(1.0, 0.0), (2.0, 0.0)],
        [(1.0, -3.0), (2.0, -2.0)],
        [(0.0, 1e-9), (1.0, 2e-9)],
        [(1.0, 1e12), (1e9, 3e12)],
    ],
)
def test_every_point_is_inside(points: list[tuple[float, float]]) -> None:
    drawn = plot([Curve("a", 0, "strong", points)], [Level(points[0][1], "here")], "steps")
    for x, y in places(drawn.curves[0].path):
        assert drawn.left <= x <= drawn.right
        assert TOP <= y <= drawn.bottom
    assert len(drawn.curves[0].markers) == len(points)
    assert drawn.levels[0][2].startswith("here ")
    assert all(math.isfinite(y) for y, _ in drawn.y_ticks)


def test_a_reference_far_from_all_values_does_not_flatten_the_curve() -> None:
    curve = Curve("a", 0, "strong", [(0.0, 0.90), (1.0, 0.91)])
    assert plot([curve], [Level(0.1, "chance")], "steps").levels == []
    assert plot([curve], [Level(0.88, "chance")], "steps").levels != []


def test_labels_of_near_references_do_not_overlap() -> None:
    curve = Curve("a", 0, "strong", [(0.0, 0.0), (1.0, 10.0)])
    heights = [place for _, place, _ in plot([curve], [Level(5, "a"), Level(5.1, "b")], "steps").levels]
    assert abs(heights[0] - heights[1]) >= 12


def test_the_description_has_the_numbers() -> None:
    curve = Curve("held out", 0, "strong", [(1.0, 7.5), (4.0, 3.0)])
    said = plot([curve], [Level(6.25, "word frequencies alone")], "steps").description
    assert said == (
        "By steps. held out: 7.50 at 1.00, 3.00 at 4.00, lowest 3.00, highest 7.50; "
        "word frequencies alone: 6.25."
    )


def test_the_table_of_numbers_has_every_held_out_value_and_says_what_it_leaves_out() -> None:
    train = [{"step": step, "mlm_loss": 1.0} for step in range(1, 501)]
    heldout = [{"step": step, "mlm_loss": 2.0} for step in (99, 199, 299, 399, 500)]
    figures = [(Curve("training", 0, "light"), train), (Curve("held out", 0, "strong"), heldout)]
    rows, left_out = _numbers("mlm_loss", figures)
    assert [row[0] for row in rows if row[2] is not None] == [99, 199, 299, 399, 500]
    assert left_out == [f"the table has {len(rows)} of 500 steps; metrics.jsonl has all"]
