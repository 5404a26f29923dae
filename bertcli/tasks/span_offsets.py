"""Spans of a text as a file has them -> entities by characters: units, what a span covers, what is wrong."""

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

from bertcli.system.terminal import short
from bertcli.tasks.examples import MarkedText, Mention
from bertcli.tasks.table import BadRow

Unit = Literal["characters", "utf-16"]
"""What offsets count: Unicode code points, or UTF-16 code units."""
_SPACE = re.compile(r"\s+|\\n")
"""White space, and the end of a line as Label Studio writes it; the text that a file names may have other."""


class Span(NamedTuple):
    """A span as a file has it. `text`: what the file says that it covers; None: it does not say it."""

    start: int
    end: int
    type: str
    text: str | None = None


@dataclass(frozen=True)
class Found:
    """What a row holds: its text, its spans (None: unlabeled), and the number of other marks by kind."""

    text: str
    spans: list[Span] | None
    unread: Counter[str] = field(default_factory=Counter[str])


def marked(where: str, columns: Mapping[str, Any], found: Found, unit: Unit = "characters") -> MarkedText:
    """The example of a text and its spans, whose offsets count `unit`. Blanks at the ends of spans are left
    out.

    Raises `BadRow` for a span that is not in the text.
    """
    mentions = None
    if found.spans is not None:
        places = code_points(found.text) if unit == "utf-16" else None
        mentions = tuple(_mention(span, found.text, where, places=places) for span in found.spans)
    return MarkedText(where, columns, (found.text,), mentions=mentions)


def code_points(text: str) -> list[int | None]:
    """The number of characters before each UTF-16 code unit, and at the end; None inside a character."""
    places: list[int | None] = []
    for number, character in enumerate(text):
        places += [number] if character <= "\uffff" else [number, None]
    return [*places, len(text)]


def _mention(span: Span, text: str, where: str, places: Sequence[int | None] | None) -> Mention:
    start, end, kind, said = span
    size = len(text) if places is None else len(places) - 1
    named = f"{where}: the span {start}-{end} ({kind})"
    if not 0 <= start < end <= size:
        unit = "characters" if places is None else "UTF-16 units"
        what = "ends before it begins, or is empty" if end <= start else "is not in the text"
        raise BadRow(
            f"{named} {what}; the text has {size:,} {unit}, counted from 0, and the end is exclusive"
        )
    if places is not None:
        first, last = places[start], places[end]
        if first is None or last is None:
            raise BadRow(
                f"{named} ends inside a character; if it counts characters: task.offsets: characters"
            )
        start, end = first, last
    inside = text[start:end]
    if said is not None and not _is_same(said, inside):
        raise BadRow(
            f"{named} covers {short(inside, 40)!r}, but the file says {short(said, 40)!r}; it is of another "
            "version of the text, or counts other units (task.offsets: characters or utf-16)"
        )
    start += len(inside) - len(inside.lstrip())
    end = start + len(inside.strip())
    if start >= end:
        raise BadRow(f"{named} covers white space alone")
    return Mention(start, end, kind)


def likely_unit(rows: Iterable[tuple[str, Sequence[Span]]]) -> Unit:
    """The unit of the offsets of texts with emoji and the like: that in which more ends of spans fit."""
    better = Counter[Unit]()
    for text, spans in rows:
        places = code_points(text)
        for span in spans:
            better["characters"] += _ends(text, span, span.start, stop=span.end)
            first, last = (places[at] if 0 <= at < len(places) else None for at in (span.start, span.end))
            if first is not None and last is not None:
                better["utf-16"] += _ends(text, span, first, stop=last)
    return "utf-16" if better["utf-16"] > better["characters"] else "characters"


def _ends(text: str, span: Span, start: int, stop: int) -> int:
    """How many ends of a span fit: at the end of a word, with the text that the file names."""
    if not 0 <= start < stop <= len(text):
        return 0
    inside = text[start:stop]
    fits = 2 * (span.text is not None and _is_same(span.text, inside))
    edges = ((start, inside[0]), (stop, inside[-1]))
    return fits + sum(
        not edge.isspace() and (at == len(text) or not text[at - 1 : at + 1].isalnum()) for at, edge in edges
    )


def _is_same(said: str, inside: str) -> bool:
    """True if the text that a file names is the one that is there."""
    return _SPACE.sub("", said) == _SPACE.sub("", inside)
