"""Values -> YAML that every reader takes as the same values, with comments for a person who edits it."""

from __future__ import annotations

import math
import re
import textwrap
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import yaml

_LINE_ENDS = re.compile("[\n\r\x85\u2028\u2029]")
_NUMBER = re.compile(r"[-+]?((0|[1-9][0-9]*)(\.[0-9]*)?|\.[0-9]+)([eE][-+]?[0-9]+)?")
_MOST_DIGITS = 400
"""Most digits of a number. No floating-point number has more, and Python refuses integers of thousands of
digits."""
_TEXT = "tag:yaml.org,2002:str"


class _Dumper(yaml.SafeDumper):
    """PyYAML quotes what YAML 1.1 reads as another type; this one also quotes what `as_number` reads."""

    def represent_text(self, text: str) -> yaml.ScalarNode:
        """The text's node. It is quoted if a reader may see a number or strip its ends (no-break spaces).

        Line ends are written as escapes, so that the text stays on one line.
        """
        is_quoted = as_number(text) is not None or text != text.strip() or _LINE_ENDS.search(text)
        return self.represent_scalar(_TEXT, text, style='"' if is_quoted else None)


_Dumper.add_representer(str, _Dumper.represent_text)


def as_number(text: str) -> int | float | None:
    """The number that a bare word is, in decimal digits: `7`, `.5`, `1e-4`; None if it is a text.

    0123, 1:30, 0x10 and 1_000 are texts, because other readers take them for other numbers.
    """
    if len(text) > _MOST_DIGITS or not _NUMBER.fullmatch(text):
        return None
    return int(text) if text.lstrip("+-").isdecimal() else float(text)


def yaml_text(value: Any, flow: bool | None = False, width: float = 80) -> str:
    """A YAML document, with the keys in their order.

    `flow`: True: each list and mapping is in one line, up to `width`; None: only those that hold no others.
    """
    return yaml.dump(
        value, Dumper=_Dumper, sort_keys=False, allow_unicode=True, default_flow_style=flow, width=width
    )


def scalar(value: Any) -> str:
    """A value in one line, as it stands after a key."""
    return yaml_text(value, flow=True, width=math.inf).removesuffix("...\n").strip()


def comment(text: str) -> str:
    """A text in one line without characters that YAML refuses also in a comment."""
    return " ".join("".join(each if each.isprintable() else " " for each in text).split())


WIDTH = 110
"""Most columns of a comment."""
_BESIDE = 60
"""Most columns of a comment beside its key."""
_COLUMN = 26
"""Column at which comments beside keys begin, if there is room."""


@dataclass(frozen=True)
class Line:
    """A key with its value and comments.

    Attributes:
        value: the value, or the default; ignored with `is_required`.
        above: the comment above the key; among all keys of a config, its meaning.
        beside: the comment beside it, which moves above if it is long; among all keys, its possible values.
        is_required: true if there is no default: the value is left empty, and the comment says so.
    """

    name: str
    value: Any
    above: str = ""
    beside: str = ""
    is_required: bool = False


@dataclass(frozen=True)
class Block:
    """A section.

    Attributes:
        name: its key; "" for a config.
        lines: its keys, and the sections in it.
        above: the comment above it; among all keys of a config, its meaning.
        is_out: true if all of it is a comment: the config is complete without it.
        is_list: true if its key holds a list of such sections.
    """

    name: str
    lines: Sequence[Line | Block]
    above: str = ""
    is_out: bool = False
    is_list: bool = False


def commented_yaml(lines: Sequence[Line | Block], head: str = "") -> str:
    """The YAML text of the lines; `head`: a comment of one or more lines before it."""
    top = [f"# {line}".rstrip() for line in head.split("\n")] if head else []
    return "\n".join([*top, *_lines(lines, "")]) + "\n"


def _lines(lines: Sequence[Line | Block], indent: str) -> Iterator[str]:
    for each in lines:
        if isinstance(each, Line):
            yield from _line(each, indent)
            continue
        yield ""
        keys = list(_lines(each.lines, "    " if each.is_list else "  "))
        if each.is_list:
            first = next(number for number, line in enumerate(keys) if not line.lstrip().startswith("#"))
            keys[first] = f"  - {keys[first].lstrip()}"
        inner = [f"{each.name}:", *keys]
        yield from (f"{indent}# {line}" for line in _wrapped(each.above, indent))
        yield from (f"{indent}# {line}" if each.is_out else f"{indent}{line}" for line in inner)


def _line(line: Line, indent: str) -> Iterator[str]:
    above = line.above
    beside = comment(f"required: {line.beside}" if line.is_required else line.beside)
    if len(beside) > _BESIDE:
        above, beside = " ".join(filter(None, [above, beside])), ""
    yield from (f"{indent}# {part}" for part in _wrapped(above, indent))
    value = "" if line.is_required else f" {scalar(line.value)}"
    items = line.value if isinstance(line.value, list) and len(value) > WIDTH else []
    written = f"{indent}{line.name}:{'' if items else value}"
    yield f"{written:<{_COLUMN}} # {beside}" if beside else written
    yield from (f"{indent}  - {scalar(item)}" for item in items)


def _wrapped(text: str, indent: str) -> list[str]:
    return textwrap.wrap(comment(text), WIDTH - len(indent), break_long_words=False, break_on_hyphens=False)
