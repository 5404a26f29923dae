"""Numbers as a reader wants them: three significant digits, thousands separators, a dash for none."""

from __future__ import annotations

import math

NONE = "–"


def number(value: float | None) -> str:
    """`1,234,567`, `3.50`, `0.0123`, `5.00e-5`; whole numbers keep all their digits."""
    if value is None or not math.isfinite(value):
        return NONE
    if isinstance(value, int) or abs(value) >= 1000:
        return f"{value:,.0f}"
    if value == 0:
        return "0"
    short = f"{value:#.3g}" if abs(value) >= 0.001 else f"{value:.2e}"
    return short.replace("e-0", "e-").removesuffix(".")


def percent(value: float | None) -> str:
    """A share of 1 as `34.1%`; what would be rounded to nothing is `<0.1%`."""
    if value is None or not math.isfinite(value):
        return NONE
    return "<0.1%" if 0 < value < 0.0005 else f"{value:.1%}"


def duration(seconds: float | None) -> str:
    """`42 s`, `6 min`, `3.2 h`."""
    if seconds is None or not math.isfinite(seconds):
        return NONE
    if seconds < 120:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 7200 else f"{seconds / 3600:.1f} h"
