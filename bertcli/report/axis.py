"""An axis of a chart: from where to where it goes, the round numbers along it, and how they are written."""

from __future__ import annotations

import math
from collections.abc import Iterable

Range = tuple[float, float]
"""The lowest and the highest value."""
_FAR = 4.0
"""A reference line is left out where it would make the range of the values larger than this times."""
_NEAR_ZERO = 0.05
"""Of the range across: one that begins so close to zero begins there."""
_UNITS = ((1e9, "G"), (1e6, "M"), (1e3, "k"))


def range_across(values: Iterable[float]) -> Range:
    """Of steps, tokens or seconds."""
    low, high = _ends(values)
    if 0 < low < _NEAR_ZERO * high:
        low = 0.0
    return (low - 0.5, high + 0.5) if high == low else (low, high)


def range_up(values: Iterable[float], references: Iterable[float]) -> Range:
    """Of what was measured, with a margin, and with those references that do not flatten its curves."""
    low, high = _ends(values)
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
    """At most `most` multiples of 1, 2 or 5 times a power of ten between `low` and `high`; `low` < `high`."""
    rough = (high - low) / most
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(power * factor for factor in (1, 2, 5, 10) if power * factor >= rough)
    first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    return [number * step for number in range(first, last + 1)]


def tick_labels(values: list[float]) -> list[str]:
    """With as many decimals as the distance between two needs; thousands as `12k`, millions as `1.5M`."""
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


def _ends(values: Iterable[float]) -> Range:
    found = list(values)
    return min(found), max(found)
