"""Curves and reference lines -> the places of everything in a chart, in the units of its SVG."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from bertcli.report.numbers import number
from bertcli.report.thinning import spread
from bertcli.report.ticks import tick_labels, ticks

Point = tuple[float, float]
Weight = Literal["light", "strong", "plain"]

_CHARACTER = 6.6
"""Width of a digit at the font size of a chart."""
_MARKED = 24
"""Points of one curve that get a marker."""
_FAR = 4.0
"""A reference line is left out where it would make the range of the values larger than this times."""
_NEAR_ZERO = 0.05
"""Of the axis across: one that begins so close to zero begins there."""
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


@dataclass(frozen=True)
class Size:
    """Of a chart, in the units of its SVG."""

    width: float
    height: float


WIDE, SMALL = Size(480, 270), Size(320, 170)


@dataclass(frozen=True)
class Drawn:
    """A curve as the path and the markers of an SVG."""

    series: int
    weight: Weight
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
    y_low, y_high = _with_levels(min(y for _, y in points), max(y for _, y in points), levels)
    y_low, y_high = _padded(y_low, y_high)
    x_low, x_high = min(x for x, _ in points), max(x for x, _ in points)
    if 0 < x_low < _NEAR_ZERO * x_high:
        x_low = 0.0
    if x_high == x_low:
        x_low, x_high = x_low - 0.5, x_high + 0.5
    y_values = ticks(y_low, y_high, 6 if size is not SMALL else 4)
    y_labels = tick_labels(y_values)
    left = 10 + _CHARACTER * max(map(len, y_labels), default=1)
    right, top, bottom = size.width - 12, 10.0, size.height - 38

    def place(x: float, y: float) -> Point:
        across, up = (x - x_low) / (x_high - x_low), (y - y_low) / (y_high - y_low)
        return left + across * (right - left), bottom - up * (bottom - top)

    x_values = ticks(x_low, x_high, 5 if size is WIDE else 4)
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
        curves=[_drawn(curve, [place(*point) for point in curve.points]) for curve in curves if curve.points],
        levels=_placed(
            [(place(x_low, each.value)[1], f"{each.label} {number(each.value)}") for each in inside], top
        ),
        description=_description(curves, levels, x_title),
    )


def _with_levels(low: float, high: float, levels: Sequence[Level]) -> tuple[float, float]:
    extent = max(high - low, 1e-9 * max(abs(low), abs(high)), 1e-12)
    for level in levels:
        new_low, new_high = min(low, level.value), max(high, level.value)
        if new_high - new_low <= _FAR * extent:
            low, high = new_low, new_high
    return low, high


def _padded(low: float, high: float) -> tuple[float, float]:
    if low == high:
        half = abs(low) / 10 or 1.0
        return low - half, high + half
    pad = 0.05 * (high - low)
    return (0.0 if 0 <= low < pad else low - pad), high + pad


def _drawn(curve: Curve, places: Sequence[Point]) -> Drawn:
    path = "M" + "L".join(f"{x:.1f} {y:.1f}" for x, y in places)
    with_markers = curve.weight == "strong" or len(places) == 1
    marked = [places[i] for i in spread(len(places), _MARKED)] if with_markers else []
    return Drawn(
        series=curve.series,
        weight=curve.weight,
        path=path,
        markers=[(round(x, 1), round(y, 1)) for x, y in marked],
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
