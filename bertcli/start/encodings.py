"""The bytes of a text -> their encoding: UTF-8, or a legacy one whose language can be read in them."""

from __future__ import annotations

import codecs
import itertools
import re
from typing import NamedTuple

from bertcli.checks.language import likely_language
from bertcli.errors import UserError
from bertcli.text.bad_bytes import BAD_BYTES_KEPT, KEPT, is_damaged
from bertcli.text.wide_encodings import wide_encoding

_LINES = 100
"""Lines with letters beyond ASCII, from which a legacy encoding is identified."""
_CONTROL = re.compile(rb"[\x00-\x08\x0e-\x1a\x1c-\x1f\x7f]")
_BINARY = 0.002
"""Share of control characters from which a file is no text."""
_LEGACY: tuple[tuple[str, str], ...] = (
    ("euc_jp", "ja"),
    ("shift_jis", "ja"),
    ("cp949", "ko"),
    ("big5", "zh"),
    ("gb18030", "zh"),
    ("cp1251", "ru uk be bg sr mk"),
    ("koi8-r", "ru"),
    ("cp866", "ru uk be"),
    ("cp1253", "el"),
    ("cp1255", "he"),
    ("cp1256", "ar fa ur"),
    ("cp874", "th"),
    ("cp1254", "tr"),
    ("cp1250", "pl cs sk hu hr sl ro bs"),
    ("cp1257", "lt lv et"),
    ("cp1258", "vi"),
    ("cp1252", "en de fr es it pt nl sv da no nb nn fi is ca gl eu ga af lb br oc la fo fy"),
)
"""Encoding -> the languages that are written in it; of two that fit, the first."""
_ODD = re.compile("[\x80-\x9f\ue000-\uf8ff\uff61-\uff9f\u3130-\u318f]")
"""C1 controls, private use, half-width katakana, single jamo: signs of a wrong encoding."""
_MIXED = re.compile("[a-zA-Z][\u0370-\u0e7f]|[\u0370-\u0e7f][a-zA-Z]")
"""A Latin letter beside one of Greek, Cyrillic, Hebrew, Arabic or Thai."""
_DAMAGED = 0.05
"""Share of the lines, or of the places beyond ASCII, that may be damaged in a text of UTF-8."""
_FEW = 0.2
"""Lines of UTF-8 for each other line beyond ASCII: fewer may be so by chance."""
_STRANGE = 0.01
"""Share of the characters that are capitals after a small letter, or beside another script."""


class Encoding(NamedTuple):
    """An encoding as Python names it, and what shows that it is not UTF-8; empty for UTF-8."""

    name: str
    proof: str = ""


def detect_encoding(data: bytes) -> Encoding | None:
    """The encoding of a text that begins with these bytes; None: they are no text.

    Where no language is readable in any legacy encoding, it is cp1252, the commonest.

    Raises `UserError` where
    parts of the text are UTF-8 and others are not.
    """
    if (wide := wide_encoding(data)) is not None:
        return Encoding(wide, f"it begins with the bytes {data[:4].hex(' ')}")
    error = _utf8_error(data)
    if len(_CONTROL.findall(data)) > _BINARY * len(data):
        return None
    if error is None or _is_mostly_utf8(data):
        return Encoding("utf-8")
    lines = [line for line in data.split(b"\n") if not line.isascii()][:_LINES]
    if lines and lines[-1:] == data.split(b"\n")[-1:]:
        lines = lines[:-1] or lines  # the last line may be cut in mid-character
    scores = {name: _score(lines, name, languages.split()) for name, languages in _LEGACY}
    best = max(scores, key=lambda name: scores[name])
    name = best if scores[best] else "cp1252"
    wrong = data[error.start : error.start + 1]
    around = data[max(0, error.start - 12) : error.start + 12].split(b"\n")
    line = next((part for part in around if wrong in part), wrong)
    return Encoding(
        name,
        f"byte {error.start} (0x{wrong.hex()}) is not UTF-8; in {name} the text there is "
        f"{line.decode(name, 'replace').strip()!r}",
    )


def _utf8_error(data: bytes) -> UnicodeDecodeError | None:
    try:
        codecs.getincrementaldecoder("utf-8")().decode(data)  # its last character may be cut
    except UnicodeDecodeError as error:
        return error
    return None


def _is_mostly_utf8(data: bytes) -> bool:
    """Whether UTF-8 is the encoding of a text in which some bytes are damaged.

    Letters beyond ASCII are hardly ever right in UTF-8 by chance. Raises `UserError` where parts of the text
    are in it and others are not.
    """
    text = codecs.getincrementaldecoder("utf-8")(BAD_BYTES_KEPT).decode(data)
    lines = [line for line in text.split("\n") if not line.isascii()]
    bad = sum(map(is_damaged, lines))
    good, all_lines = len(lines) - bad, text.count("\n") + 1
    if good > bad or (good >= _FEW * bad and bad <= _DAMAGED * all_lines):
        return True
    damaged = len(KEPT.findall(text))
    right = len(KEPT.sub("", text)) - len(text.encode("ascii", "ignore"))
    if right >= damaged / _DAMAGED:  # in few long lines
        return True
    if good > _FEW * bad:
        raise UserError(
            f"{good:,} lines are UTF-8 and {bad:,} are in another encoding; a file has one. Divide "
            "it, or convert those lines"
        )
    return False


def _score(lines: list[bytes], encoding: str, languages: list[str]) -> float:
    """How well the encoding fits: the share of the lines that are in one of its languages. Half of it if most
    letters are capitals, many follow a small letter, or scripts are mixed: then the encoding is another."""
    try:
        decoded = [line.decode(encoding) for line in lines]
    except UnicodeDecodeError:
        return 0.0
    text = "".join(decoded)
    if _ODD.search(text):
        return 0.0
    votes = [likely_language([line])[0] for line in decoded]
    fitting = sum(vote in languages for vote in votes) / max(1, sum(vote is not None for vote in votes))
    small, capital = (sum(map(is_kind, text)) for is_kind in (str.islower, str.isupper))
    inside = sum(a.islower() and b.isupper() for a, b in itertools.pairwise(text))
    strange = inside + 2 * len(_MIXED.findall(text))
    return fitting / 2 if capital > small or strange > _STRANGE * len(text) else fitting
