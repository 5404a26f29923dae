"""The round numbers along an axis, and how they are written."""

from __future__ import annotations

import math

_UNITS = ((1e9, "G"), (1e6, "M"), (1e3, "k"))


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
