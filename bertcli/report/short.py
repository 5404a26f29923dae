"""Texts cut to what a page can show."""

from __future__ import annotations

ELLIPSIS = "…"


def short(text: str, most: int) -> str:
    """The beginning of a text; the ellipsis says that there is more."""
    return text if len(text) <= most else text[: most - 1].rstrip() + ELLIPSIS


def around(text: str, start: int, end: int, most: int) -> tuple[int, int]:
    """The piece of `text` of at most `most` characters with `start` to `end` in its middle; where it is."""
    room = max(0, most - (end - start)) // 2
    first = max(0, min(start - room, len(text) - most))
    return first, min(len(text), first + most)
