"""A line of text -> what is wrong with its characters."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Literal

Fault = Literal["mojibake", "control", "long"]

LONG_LINE = 20_000
"""Characters. Prose has shorter paragraphs: the longest of eight classics has 14,068, of 99 novels 9,940."""

_CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f\x85]")
"""All but the tab, the newlines (the reader removes them), and the ones that only occur in mojibake."""

# The bytes 0x80 to 0xBF, decoded as cp1252 and as Latin-1.
_AFTER = "€‚ƒ„…†‡ˆ‰Š‹Œ\x8dŽ\x8f\x90‘’“”•–—˜™š›œ\x9džŸ\x80-\xbf"
_BUT_QUOTES = "".join(c for c in _AFTER[:-3] if c not in "‘’“”–—…") + "\x80-\xbf"
_MOJIBAKE = re.compile(
    "\ufffd"
    f"|[ÂÃ][{_AFTER}]"  # letters and marks of Latin-1: Ã© was é
    f"|[ÄÅ][{_BUT_QUOTES}]"  # Polish, Czech, Turkish; in Swedish a quote may follow
    f"|(?:[ÎÏÐÑØÙ×][{_AFTER}]){{2}}"  # Greek, Cyrillic, Arabic, Hebrew: two letters or more
    f"|â[{_AFTER}]{{2}}"  # punctuation: â€™ was ’
    f"|(?:[ã-é][{_AFTER}]{{2}}){{2}}"  # Chinese, Japanese, Korean, Thai, the scripts of India
    "|ï»¿"
    "|[\x80-\x84\x86-\x9f]"  # cp1252 read as Latin-1: \x92 was ’
)
_SUSPECT = re.compile("[ÂÃÄÅÎÏÐÑØÙ×â-éï\ufffd](?:(?<=\ufffd)|[^\x00-\x7f])")
"""Where the above may begin. Searched for first: a single class of characters is found many times faster."""

FAULT_TEXTS: dict[Fault, tuple[str, str]] = {
    "mojibake": (
        "hold mojibake: text decoded by the wrong encoding (Ã© for é), or U+FFFD where a byte was lost",
        "mend the text (the package ftfy repairs most of it), or name the encoding of its original",
    ),
    "control": (
        "hold control characters: old Mac line ends (\\r), page breaks (\\x0c), parts of a binary file",
        "replace line ends and page breaks by newlines (tr '\\r\\f' '\\n'), and delete the others",
    ),
    "long": (
        f"are longer than {LONG_LINE:,} characters: tables, data, or text without line ends",
        "leave them out, or break them into paragraphs",
    ),
}
"""Fault -> what is wrong with the lines, and what to do."""


def find_faults(line: str) -> Iterator[tuple[Fault, int]]:
    """Each kind of fault in the line, and the number of the character where it first occurs.

    mojibake: U+FFFD, which replaces a lost byte, and the patterns of UTF-8 decoded as cp1252 or Latin-1, and
    of cp1252 decoded as Latin-1. They are rare in correct text, but possible.
    """
    is_printable = line.isprintable()
    if len(line) > LONG_LINE:
        yield "long", 0
    if (not is_printable or _SUSPECT.search(line)) and (found := _MOJIBAKE.search(line)):
        yield "mojibake", found.start()
    if not is_printable and (found := _CONTROL.search(line)):
        yield "control", found.start()
