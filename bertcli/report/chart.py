"""Curves and reference lines -> the places of everything in a chart, in the units of its SVG."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

from bertcli.report.axis import range_across, range_up, tick_labels, ticks
from bertcli.report.formatting import number
from bertcli.report.thinning import spread

Point = tuple[float, float]
Weight = Literal["light", "strong", "plain"]

_CHARACTER = 6.6
"""Width of a digit at the font size of a chart."""
_MARKED, _FEWEST, _MOST = 48, 4, 24
"""Markers of one chart, and the limits of one curve in it."""
MARKERS = (
    "M-3.5 0a3.5 3.5 0 1 0 7 0a3.5 3.5 0 1 0-7 0Z",
    "M-3.2-3.2h6.4v6.4h-6.4Z",
    "M0-4.2L4 3H-4Z",
    "M0-4.5L4.5 0L0 4.5L-4.5 0Z",
    "M0 4.2L4-3H-4Z",
    "M-4-1.3h2.7V-4h2.6v2.7H4v2.6H1.3V4h-2.6V1.3H-4Z",
)
"""Around (0, 0), one a series, so that color is never alone."""


@dataclass(frozen=True)
class Curve:
    """One line of a chart.

    Attributes:
        series: the number of its color, dashes and marker.
        weight: light (training, behind), strong (held out, with markers) or plain (alone in its chart).
    """

    name: str
    series: int
    weight: Weight
    points: Sequence[Point]


@dataclass(frozen=True)
class Level:
    """A reference line."""

    value: float
    label: str


class Size(NamedTuple):
    """Of a chart, in the units of its SVG."""

    width: float
    height: float


WIDE, SMALL = Size(480, 270), Size(320, 170)


@dataclass(frozen=True)
class Drawn:
    """A curve in the places of an SVG: its points and its path, and those of them that have a marker."""

    series: int
    weight: Weight
    points: Sequence[Point]
    path: str
    markers: Sequence[Point]
    marker: str


@dataclass(frozen=True)
class Plot:
    """A chart ready to be written: every number is a place in its SVG."""

    size: Size
    left: float
    right: float
    top: float
    bottom: float
    x_ticks: Sequence[tuple[float, str]]
    y_ticks: Sequence[tuple[float, str]]
    x_title: str
    curves: Sequence[Drawn]
    levels: Sequence[tuple[float, float, str]]
    """Of each: the height of the line, that of its label, and the label."""
    description: str


def plot(curves: Sequence[Curve], levels: Sequence[Level], x_title: str, size: Size = WIDE) -> Plot:
    """Lay out a chart; at least one curve has a point."""
    points = [point for curve in curves for point in curve.points]
    x_low, x_high = range_across(x for x, _ in points)
    y_low, y_high = range_up((y for _, y in points), [level.value for level in levels])
    x_values, y_values = (
        ticks(x_low, x_high, 5 if size is WIDE else 4),
        ticks(y_low, y_high, 4 if size is SMALL else 6),
    )
    y_labels = tick_labels(y_values)
    left = 10 + _CHARACTER * max(map(len, y_labels), default=1)
    right, top, bottom = size.width - 12, 10.0, size.height - 38

    def place(x: float, y: float) -> Point:
        across, up = (x - x_low) / (x_high - x_low), (y - y_low) / (y_high - y_low)
        return left + across * (right - left), bottom - up * (bottom - top)

    strong = sum(curve.weight == "strong" for curve in curves)
    marked = max(_FEWEST, min(_MOST, _MARKED // max(1, strong)))
    inside = [level for level in levels if y_low <= level.value <= y_high]
    return Plot(
        size=size,
        left=left,
        right=right,
        top=top,
        bottom=bottom,
        x_ticks=[
            (min(place(x, y_low)[0], size.width - len(label) * _CHARACTER / 2), label)
            for x, label in zip(x_values, tick_labels(x_values), strict=True)
        ],
        y_ticks=[(place(x_low, y)[1], label) for y, label in zip(y_values, y_labels, strict=True)],
        x_title=x_title,
        curves=[
            _drawn(curve, [place(*point) for point in curve.points], marked)
            for curve in curves
            if curve.points
        ],
        levels=_placed(
            [(place(x_low, each.value)[1], f"{each.label} {number(each.value)}") for each in inside], top
        ),
        description=_description(curves, levels, x_title),
    )


def _drawn(curve: Curve, points: Sequence[Point], most: int) -> Drawn:
    """`most`: markers."""
    points = [(round(x, 1), round(y, 1)) for x, y in points]
    with_markers = curve.weight == "strong" or len(points) == 1
    return Drawn(
        series=curve.series,
        weight=curve.weight,
        points=points,
        path="M" + "L".join(f"{x} {y}" for x, y in points),
        markers=[points[i] for i in spread(len(points), most)] if with_markers else [],
        marker=MARKERS[curve.series % len(MARKERS)],
    )


def _placed(levels: Sequence[tuple[float, str]], top: float) -> list[tuple[float, float, str]]:
    """A label stands on its line, or below it where there is no room above."""
    placed: list[tuple[float, float, str]] = []
    for y, label in sorted(levels):
        above = y - 5
        taken = placed and above - placed[-1][1] < 13
        placed.append((y, y + 13 if taken or above < top + 9 else above, label))
    return placed


def _description(curves: Sequence[Curve], levels: Sequence[Level], x_title: str) -> str:
    parts = []
    for curve in curves[:6]:
        if not curve.points:
            continue
        (x_first, first), (x_last, last) = curve.points[0], curve.points[-1]
        low, high = min(y for _, y in curve.points), max(y for _, y in curve.points)
        parts.append(
            f"{curve.name}: {number(first)} at {number(x_first)}, {number(last)} at {number(x_last)}, "
            f"lowest {number(low)}, highest {number(high)}"
        )
    more = [f"and {len(curves) - 6} more curves"] if len(curves) > 6 else []
    lines = [f"{level.label}: {number(level.value)}" for level in levels]
    return f"By {x_title}. " + "; ".join([*parts, *more, *lines]) + "."
