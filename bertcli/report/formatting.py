"""Numbers, shares, times and texts as a page shows them: rounded, and cut to what is read."""

from __future__ import annotations

import math

NONE, ELLIPSIS = "–", "…"


def number(value: float | None) -> str:
    """`1,234,567`, `3.50`, `0.0123`, `5.00e-5`; whole numbers keep all their digits."""
    if value is None or not math.isfinite(value):
        return NONE
    if isinstance(value, int) or abs(value) >= 999.5:
        return f"{value:,.0f}"
    if value == 0:
        return "0"
    short = f"{value:#.3g}" if abs(value) >= 0.001 else f"{value:.2e}"
    return short.replace("e-0", "e-").removesuffix(".")


def percent(value: float | None) -> str:
    """A share of 1 as `34.1%`; what would be rounded to none or to all is `<0.1%` or `>99.9%`."""
    if value is None or not math.isfinite(value):
        return NONE
    if 0 < value < 0.0005:
        return "<0.1%"
    return ">99.9%" if 0.9995 <= value < 1 else f"{value:.1%}"


def duration(seconds: float | None) -> str:
    """`42 s`, `6 min`, `3.2 h`."""
    if seconds is None or not math.isfinite(seconds):
        return NONE
    if seconds < 120:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 7200 else f"{seconds / 3600:.1f} h"


def short(text: str, most: int) -> str:
    """The beginning of a text of more than `most` characters; the ellipsis says that there is more."""
    return text if len(text) <= most else text[: most - 1].rstrip() + ELLIPSIS


def around(text: str, start: int, end: int, most: int) -> tuple[int, int]:
    """The piece of `text` of at most `most` characters with `start` to `end` in its middle; where it is."""
    room = max(0, most - (end - start)) // 2
    first = max(0, min(start - room, len(text) - most))
    return first, min(len(text), first + most)
