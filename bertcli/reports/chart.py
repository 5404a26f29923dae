"""Charts as numbers for an SVG: thinned curves, ranges, ticks, reference lines and markers."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

from bertcli.system.terminal import number


def thin(values: Sequence[float], most: int) -> list[int]:
    """The indices of at most `most` of `values`, ascending, that draw nearly the same line.

    The first and the last are kept, and the highest and the lowest of each stretch. `most`: 4 or more.
    """
    count = len(values)
    if count <= most:
        return list(range(count))
    stretches = (most - 2) // 2
    kept = {0, count - 1}
    for stretch in range(stretches):
        start, stop = (1 + (count - 2) * edge // stretches for edge in (stretch, stretch + 1))
        places = range(start, stop)
        kept |= {min(places, key=values.__getitem__), max(places, key=values.__getitem__)}
    return sorted(kept)


def spread(count: int, most: int) -> list[int]:
    """The indices below `count`, at most `most`, evenly spread; the first and the last are among them."""
    if count <= most:
        return list(range(count))
    return sorted({round(place * (count - 1) / (most - 1)) for place in range(most)})


Range = tuple[float, float]
"""The lowest and the highest value."""
_FAR = 4.0
"""A reference line is left out if it would make the range of the values this many times larger."""
_NEAR_ZERO = 0.05
"""Share of the highest value; a horizontal range that begins below it begins at zero."""
_UNITS = ((1e9, "G"), (1e6, "M"), (1e3, "k"))


def range_across(values: Sequence[float]) -> Range:
    """The horizontal range: of steps, tokens or seconds."""
    low, high = min(values), max(values)
    if 0 < low < _NEAR_ZERO * high:
        low = 0.0
    return (low - 0.5, high + 0.5) if high == low else (low, high)


def range_up(values: Sequence[float], references: Sequence[float]) -> Range:
    """The vertical range of the measured values, with a margin, and of references that do not flatten it."""
    low, high = min(values), max(values)
    extent = max(high - low, 1e-9 * max(abs(low), abs(high)), 1e-12)
    for reference in references:
        new_low, new_high = min(low, reference), max(high, reference)
        if new_high - new_low <= _FAR * extent:
            low, high = new_low, new_high
    if low == high:
        half = abs(low) / 10 or 1.0
        return low - half, high + half
    margin = 0.05 * (high - low)
    return (0.0 if 0 <= low < margin else low - margin), high + margin


def ticks(low: float, high: float, most: int) -> list[float]:
    """Multiples of 1, 2 or 5 times a power of ten, at most `most`, from `low` to `high`; `low` < `high`."""
    rough = (high - low) / most
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(power * factor for factor in (1, 2, 5, 10) if power * factor >= rough)
    first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    return [number * step for number in range(first, last + 1)]


def tick_labels(values: list[float]) -> list[str]:
    """Labels with as many decimals as the step needs; thousands as `12k`, millions as `1.5M`."""
    if len(values) < 2:
        return [f"{value:g}" for value in values]
    step, largest = values[1] - values[0], max(map(abs, values))
    if largest >= 10_000:
        unit, suffix = next((unit, suffix) for unit, suffix in _UNITS if largest >= unit)
        return [
            "0" if not value else f"{value / unit:.{_decimals(step / unit)}f}{suffix}" for value in values
        ]
    if largest < 0.001:
        return ["0" if not value else f"{value:.0e}".replace("e-0", "e-") for value in values]
    return [f"{value:,.{_decimals(step)}f}" for value in values]


def _decimals(step: float) -> int:
    return max(0, -math.floor(math.log10(step) + 1e-9))


Point = tuple[float, float]
Weight = Literal["light", "strong", "plain"]

_CHARACTER = 6.6
"""Width of a digit at the font size of a chart."""
_MARKED, _FEWEST, _MOST = 48, 4, 24
"""Number of markers in one chart, and the fewest and the most of one curve in it."""
TOP = 10.0
"""The place of the highest value: its distance from the top of the SVG."""
MARKERS = (
    "M-3.5 0a3.5 3.5 0 1 0 7 0a3.5 3.5 0 1 0-7 0Z",
    "M-3.2-3.2h6.4v6.4h-6.4Z",
    "M0-4.2L4 3H-4Z",
    "M0-4.5L4.5 0L0 4.5L-4.5 0Z",
    "M0 4.2L4-3H-4Z",
    "M-4-1.3h2.7V-4h2.6v2.7H4v2.6H1.3V4h-2.6V1.3H-4Z",
)
"""SVG paths of markers around (0, 0), one per series, so that no series is told by its color alone."""


@dataclass(frozen=True)
class Curve:
    """One line of a chart.

    Attributes:
        series: the number that selects color, dashes and marker.
        weight: light (training, in the background), strong (held out, with markers) or plain (alone).
        points: values.
    """

    name: str
    series: int
    weight: Weight
    points: Sequence[Point] = ()


@dataclass(frozen=True)
class Level:
    """A reference line."""

    value: float
    label: str


class Size(NamedTuple):
    """The size of a chart, in the units of its SVG."""

    width: float
    height: float


WIDE, SMALL = Size(480, 270), Size(320, 170)


@dataclass(frozen=True)
class Drawn:
    """A curve in the coordinates of an SVG.

    Attributes:
        series, weight: those of the `Curve`.
        path: what draws the line through all points.
        markers: the points that have a marker.
    """

    series: int
    weight: Weight
    points: Sequence[Point]
    path: str
    markers: Sequence[Point]


@dataclass(frozen=True)
class Plot:
    """A chart that is ready to be written; every number is a coordinate in its SVG.

    Attributes:
        levels: reference lines: y of the line, y of its label, and the label.
    """

    size: Size
    left: float
    right: float
    bottom: float
    x_ticks: Sequence[tuple[float, str]]
    y_ticks: Sequence[tuple[float, str]]
    x_title: str
    curves: Sequence[Drawn]
    levels: Sequence[tuple[float, float, str]]
    description: str


def plot(curves: Sequence[Curve], levels: Sequence[Level], x_title: str, size: Size = WIDE) -> Plot:
    """Lay out a chart; at least one curve must have a point."""
    points = [point for curve in curves for point in curve.points]
    x_low, x_high = range_across([x for x, _ in points])
    y_low, y_high = range_up([y for _, y in points], [level.value for level in levels])
    x_values = ticks(x_low, x_high, 5 if size is WIDE else 4)
    y_values = ticks(y_low, y_high, 4 if size is SMALL else 6)
    y_labels = tick_labels(y_values)
    left = 10 + _CHARACTER * max(map(len, y_labels), default=1)
    right, bottom = size.width - 12, size.height - 38

    def place(x: float, y: float) -> Point:
        across, up = (x - x_low) / (x_high - x_low), (y - y_low) / (y_high - y_low)
        return left + across * (right - left), bottom - up * (bottom - TOP)

    strong = sum(curve.weight == "strong" for curve in curves)
    marked = max(_FEWEST, min(_MOST, _MARKED // max(1, strong)))
    inside = [
        (place(x_low, level.value)[1], f"{level.label} {number(level.value)}")
        for level in levels
        if y_low <= level.value <= y_high
    ]
    return Plot(
        size=size,
        left=left,
        right=right,
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
        levels=_placed(inside),
        description=_description(curves, levels, x_title),
    )


def _drawn(curve: Curve, points: Sequence[Point], most: int) -> Drawn:
    """The curve through `points`, coordinates in the SVG. `most`: the largest number of markers."""
    points = [(round(x, 1), round(y, 1)) for x, y in points]
    with_markers = curve.weight == "strong" or len(points) == 1
    markers = [points[i] for i in spread(len(points), most)] if with_markers else []
    path = "M" + "L".join(f"{x} {y}" for x, y in points)
    return Drawn(curve.series, curve.weight, points, path=path, markers=markers)


def _placed(levels: Sequence[tuple[float, str]]) -> list[tuple[float, float, str]]:
    """The lines with places for their labels: above the line, or below it if there is no room above."""
    placed: list[tuple[float, float, str]] = []
    for y, label in sorted(levels):
        above = y - 5
        taken = placed and above - placed[-1][1] < 13
        placed.append((y, y + 13 if taken or above < TOP + 9 else above, label))
    return placed


def _description(curves: Sequence[Curve], levels: Sequence[Level], x_title: str) -> str:
    parts = []
    for curve in (each for each in curves[:6] if each.points):
        (x_first, first), (x_last, last) = curve.points[0], curve.points[-1]
        low, high = min(y for _, y in curve.points), max(y for _, y in curve.points)
        parts.append(
            f"{curve.name}: {number(first)} at {number(x_first)}, {number(last)} at {number(x_last)}, "
            f"lowest {number(low)}, highest {number(high)}"
        )
    more = [f"and {len(curves) - 6} more curves"] if len(curves) > 6 else []
    lines = [f"{level.label}: {number(level.value)}" for level in levels]
    return f"By {x_title}. " + "; ".join([*parts, *more, *lines]) + "."
