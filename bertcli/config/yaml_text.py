"""Values -> YAML that every reader takes as the same values: texts that look like another type are quoted."""

from __future__ import annotations

import re
from typing import Any

import yaml

_LINE_ENDS = re.compile("[\n\r\x85\u2028\u2029]")
_NUMBER = re.compile(r"[-+]?((0|[1-9][0-9]*)(\.[0-9]*)?|\.[0-9]+)([eE][-+]?[0-9]+)?")
_MOST_DIGITS = 400
"""More than any number of floating point has; Python refuses to read integers of thousands of digits."""
_TEXT = "tag:yaml.org,2002:str"


class _Dumper(yaml.SafeDumper):
    """PyYAML quotes what YAML 1.1 reads as another type; this one also quotes what `as_number` reads."""

    def represent_text(self, text: str) -> yaml.ScalarNode:
        """Quoted where a reader may see a number, or strips its ends (no-break spaces); with line ends as
        escapes, so that it stays on a line."""
        is_quoted = as_number(text) is not None or text != text.strip() or _LINE_ENDS.search(text)
        return self.represent_scalar(_TEXT, text, style='"' if is_quoted else None)


_Dumper.add_representer(str, _Dumper.represent_text)


def as_number(text: str) -> int | float | None:
    """The number that a bare word is, in decimal digits: `7`, `.5`, `1e-4`; None: it is a text.

    So are 0123, 1:30, 0x10 and 1_000, which are other numbers to other readers.
    """
    if len(text) > _MOST_DIGITS or not _NUMBER.fullmatch(text):
        return None
    return int(text) if text.lstrip("+-").isdecimal() else float(text)


def yaml_text(value: Any, flow: bool | None = False) -> str:
    """A document, with the keys in their order.

    `flow`: lists and mappings in one line each; None: those that hold no others.
    """
    return yaml.dump(value, Dumper=_Dumper, sort_keys=False, allow_unicode=True, default_flow_style=flow)


def scalar(value: Any) -> str:
    """A value in one line, as it stands after a key."""
    text = yaml.dump(
        value,
        Dumper=_Dumper,
        sort_keys=False,
        allow_unicode=True,
        default_flow_style=True,
        width=float("inf"),
    )
    return text.removesuffix("...\n").strip()


def comment(text: str) -> str:
    """A text in one line without characters that YAML refuses also in a comment."""
    return " ".join("".join(each if each.isprintable() else " " for each in text).split())
