"""The rows of some runs -> one chart for each figure that the rows have, whatever its name."""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from bertcli.reports.chart import SMALL, WIDE, Curve, Level, Plot, Weight, plot, spread, thin
from bertcli.reports.run_view import Row, RunView
from bertcli.system.terminal import short

AXES = ("step", "tokens", "seconds")
PLACE = (*AXES, "epoch", "split", "skipped_steps", "positive_label")
"""Keys of a row that say where it belongs, not what was measured."""
_TRAINING = ("learning_rate", "grad_norm", "tokens_per_second", "loss_scale")
"""Keys of figures about the course of the training."""
_POINTS, _FEWEST, _MOST = 600, 24, 200
"""Number of points in one chart, and the fewest and the most of one curve in it."""
_CELLS, _FEWEST_ROWS, _MOST_ROWS = 400, 8, 40
"""Number of cells in the table of one chart, and its fewest and most rows."""
_LARGE, _CHARTS = 4, 12
"""Numbers of charts about the scores: large ones, and all."""
MOST_SERIES = 12
_LONGEST = 40
"""Largest number of characters of a label."""
_SPLITS = {"train": "training", "heldout": "held out"}


@dataclass(frozen=True)
class Series:
    """A run, or the run of one seed, with its number in every chart."""

    number: int
    name: str
    view: RunView


@dataclass(frozen=True)
class Chart:
    """One figure of the log.

    Attributes:
        plots: a plot for each of `AXES`.
        small: True for the less important charts.
        head, rows: the table of the numbers; None: not measured there.
        noted: texts on the reference lines that are too far away to be drawn.
    """

    title: str
    small: bool
    plots: Mapping[str, Plot]
    head: Sequence[str]
    rows: Sequence[Sequence[float | None]]
    noted: Sequence[str]


_Figure = tuple[Curve, Sequence[Row]]
"""A curve, whose points depend on the axis, and its rows; each has a finite number."""


def series_of(views: Sequence[RunView]) -> tuple[list[Series], int]:
    """The series of every chart, at most `MOST_SERIES`, and how many were left out."""
    named = [
        (part, [view.name] * (len(views) > 1) + [part.name] * bool(view.several))
        for view in views
        for part in view.parts
    ]
    series = [Series(number, ", ".join(names), part) for number, (part, names) in enumerate(named)]
    return series[:MOST_SERIES], len(series[MOST_SERIES:])


def charts(series: Sequence[Series], levels: Mapping[str, Sequence[Level]], metric: str = "") -> list[Chart]:
    """The charts of losses, of other scores, and of the course of the training.

    Args:
        levels: key of a row -> its reference lines.
        metric: the score that comes first.
    """
    rows = [row for each in series for row in each.view.rows]
    names = dict.fromkeys(key for row in rows for key in row)
    keys = [key for key in names if any(_has(row, key) for row in rows)]
    losses = [key for key in keys if key.endswith("loss")]
    others = [key for key in keys if key not in (*_TRAINING, *losses)]
    learned = [*losses, *sorted(others, key=lambda key: key != metric)][:_CHARTS]
    small = [*learned[_LARGE:], *(key for key in _TRAINING if key in keys)]
    return [
        _chart(key, series, levels.get(key, ()), small=key in small) for key in [*learned[:_LARGE], *small]
    ]


def _has(row: Row, key: str) -> bool:
    """True if a row has a figure of this name; `loss` does not count if it is a sum of other losses."""
    if key in PLACE or (key == "loss" and any(other.endswith("_loss") for other in row)):
        return False
    return isinstance(row.get(key), int | float) and math.isfinite(row[key])


def shown_name(key: str, rows: Iterable[Row] = ()) -> str:
    """The name of a key of `rows` for people: `mlm loss`; `f1 of spam` for the F1 of one of two labels."""
    labels = {row["positive_label"] for row in rows if key == "f1" and "positive_label" in row}
    return f"f1 of {short(labels.pop(), _LONGEST)}" if len(labels) == 1 else key.replace("_", " ")


def _chart(key: str, series: Sequence[Series], levels: Sequence[Level], small: bool) -> Chart:
    found = list(_figures(key, series))
    most = max(_FEWEST, min(_MOST, _POINTS // max(1, len(found))))
    thinned = [(curve, [rows[i] for i in thin([row[key] for row in rows], most)]) for curve, rows in found]
    last = max(row.get("seconds") or 0 for _, rows in thinned for row in rows)
    scales = {"step": (1.0, "steps"), "tokens": (1.0, "tokens"), "seconds": _unit(last)}
    plots = {}
    for axis, (scale, x_title) in scales.items():
        drawn = [
            replace(curve, points=[(row[axis] / scale, row[key]) for row in rows if axis in row])
            for curve, rows in thinned
        ]
        if any(curve.points for curve in drawn):
            plots[axis] = plot(drawn, levels, x_title, size=SMALL if small else WIDE)
    drawn_levels = {label for one in plots.values() for *_, label in one.levels}
    far = [level for level in levels if not any(label.startswith(level.label) for label in drawn_levels)]
    numbers, left_out = _numbers(key, found)
    return Chart(
        title=shown_name(key, found[0][1]),
        small=small,
        plots=plots,
        head=["step", *(curve.name for curve, _ in found)],
        rows=numbers,
        noted=[*(f"not in the picture: {level.label}, {level.value:.3g}" for level in far), *left_out],
    )


def _figures(key: str, series: Sequence[Series]) -> Iterator[_Figure]:
    both = all(any(_has(row, key) for each in series for row in each.view.split(split)) for split in _SPLITS)
    for each in series:
        for split, what in _SPLITS.items():
            rows = [row for row in each.view.split(split) if _has(row, key)]
            if rows:
                name = ", ".join(filter(None, [each.name, what if both else ""])) or shown_name(key, rows)
                weight: Weight = "light" if both else "plain"
                yield Curve(name, each.number, "strong" if split == "heldout" else weight), rows


def _unit(seconds: float) -> tuple[float, str]:
    if seconds < 300:
        return 1.0, "seconds"
    return (60.0, "minutes") if seconds < 3 * 3600 else (3600.0, "hours")


def _numbers(key: str, found: Sequence[_Figure]) -> tuple[list[list[float | None]], list[str]]:
    """The rows of the table, and a line if some are left out; rows with held-out values are preferred."""
    columns = [{row["step"]: row[key] for row in rows} for _, rows in found]
    steps = sorted({step for column in columns for step in column})
    heldout = sorted({row["step"] for curve, rows in found if curve.weight == "strong" for row in rows})
    most = max(_FEWEST_ROWS, min(_MOST_ROWS, _CELLS // (len(columns) + 1)))
    kept = {heldout[i] for i in spread(len(heldout), most)}
    others = [step for step in steps if step not in kept and step not in heldout]
    room = most - len(kept)
    kept |= {others[i] for i in spread(len(others), room)} if room > 1 else set()
    rows = [[step, *(column.get(step) for column in columns)] for step in sorted(kept)]
    line = f"the table has {len(rows):,} of {len(steps):,} steps; metrics.jsonl has all"
    return rows, [line] * (len(rows) < len(steps))
