"""Keys with values and comments -> a YAML text that a person reads and edits."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from bertcli.config.yaml_text import comment, scalar

WIDTH = 110
"""Columns of a comment."""
_BESIDE = 60
"""Columns of a comment that may stand beside its key."""
_COLUMN = 26
"""Where the comments beside keys begin, if there is room."""


@dataclass(frozen=True)
class Line:
    """A key with its value.

    Attributes:
        value: None with `is_empty`: the value is left out, for the user to give.
        above, beside: comments; a long one beside a key moves above it.
    """

    name: str
    value: Any
    above: str = ""
    beside: str = ""
    is_empty: bool = False


@dataclass(frozen=True)
class Block:
    """A section with its lines; `is_out`: all of it is a comment."""

    name: str
    lines: Sequence[Line | Block]
    above: str = ""
    is_out: bool = False


def commented_yaml(lines: Sequence[Line | Block], head: str = "") -> str:
    """The text; `head`: a comment of one or more lines before it."""
    top = [f"# {line}".rstrip() for line in head.split("\n")] if head else []
    return "\n".join([*top, *_lines(lines, "")]) + "\n"


def _lines(lines: Sequence[Line | Block], indent: str) -> Iterator[str]:
    for each in lines:
        if isinstance(each, Line):
            yield from _line(each, indent)
            continue
        yield ""
        inner = [f"{each.name}:", *_lines(each.lines, "  ")]
        yield from (f"{indent}# {line}" for line in _wrapped(each.above, indent))
        yield from (f"{indent}# {line}" if each.is_out else f"{indent}{line}" for line in inner)


def _line(line: Line, indent: str) -> Iterator[str]:
    above, beside = line.above, comment(line.beside)
    if len(beside) > _BESIDE:
        above, beside = " ".join(filter(None, [above, beside])), ""
    yield from (f"{indent}# {part}" for part in _wrapped(above, indent))
    value = "" if line.is_empty else f" {scalar(line.value)}"
    items = line.value if isinstance(line.value, list) and len(value) > WIDTH else []
    written = f"{indent}{line.name}:{'' if items else value}"
    yield f"{written:<{_COLUMN}} # {beside}" if beside else written
    yield from (f"{indent}  - {scalar(item)}" for item in items)


def _wrapped(text: str, indent: str) -> list[str]:
    return textwrap.wrap(comment(text), WIDTH - len(indent), break_long_words=False, break_on_hyphens=False)
