"""Right and given numbers -> a point for each row, and the line on which both are equal."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from bertcli.report.chart import Curve, Plot, Point, Size, plot

MOST_POINTS = 400


@dataclass(frozen=True)
class Scatter:
    """A plot of the diagonal, the points beside it, and how many rows are not drawn."""

    plot: Plot
    points: Sequence[Point]
    left_out: int


def scatter(right: Sequence[float], given: Sequence[float]) -> Scatter:
    """At most `MOST_POINTS` of the rows, chosen by chance and always the same."""
    order = np.random.default_rng(0).permutation(len(right))[:MOST_POINTS].tolist()
    low, high = min(*right, *given), max(*right, *given)
    corners = Curve("equal", 0, "plain", points=[(low, low), (high, high)])
    cloud = Curve("rows", 1, "plain", points=[(right[i], given[i]) for i in order])
    laid_out = plot([corners, cloud], [], "right value", size=Size(440, 360))
    points = [
        (float(x), float(y))
        for x, y in (place.split() for place in laid_out.curves[1].path.removeprefix("M").split("L"))
    ]
    return Scatter(laid_out, points, len(right) - len(order))
