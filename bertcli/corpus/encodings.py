"""Bytes that are not in the encoding of their file: how they are kept apart, counted and shown."""

from __future__ import annotations

import codecs
import re
from dataclasses import dataclass, field
from pathlib import Path

from bertcli.config.section import Decoding

BAD_BYTES = "bytes that are not"
"""In messages, before the name of an encoding."""
BAD_BYTES_KEPT = "bertcli-keep"
"""The way of Python's decoders (`errors`) that turns each bad byte into half a character, U+DC00 and what
follows: no decoder makes these of any text, so they stay apart from it."""
KEPT = re.compile("[\udc00-\udcff]+")
"""Such bytes that follow one another."""
_SHOWN, _AROUND = 3, 30
"""Bad lines that are shown, and the characters before and after the first bad byte of each."""
_FOREIGN = 0.1
"""Share of the lines with bad bytes, above which the text is likely in another encoding."""


def _keep(error: UnicodeError) -> tuple[str, int]:
    if not isinstance(error, UnicodeDecodeError):
        raise error
    return "".join(chr(0xDC00 + byte) for byte in error.object[error.start : error.end]), error.end


codecs.register_error(BAD_BYTES_KEPT, _keep)


def is_damaged(text: str) -> bool:
    """Whether a decoded text holds kept bad bytes."""
    if text.isascii():
        return False
    try:
        text.encode()  # many times faster than a search
    except UnicodeEncodeError:
        return True
    return False


def with_replaced(text: str) -> str:
    """The text with U+FFFD in place of kept bad bytes."""
    return KEPT.sub("\ufffd", text)


def escaped_bytes(text: str) -> str:
    """The text with kept bad bytes as Python writes them: `caf\\xe9`."""
    return KEPT.sub(lambda found: "".join(f"\\x{ord(c) - 0xDC00:02x}" for c in found[0]), text)


def bad_bytes_advice(decoding: Decoding) -> str:
    """What to do about bytes that are not in the encoding."""
    here = "" if decoding.section == "task" else f" (for some of the files, in {decoding.section}.encodings)"
    return (
        f"If the text is in another encoding, name it in {decoding.key}{here}, for example cp1252; if "
        f"bytes are damaged, set {decoding.section}.bad_bytes: replace or skip-line; if it is not text, "
        "leave the file out"
    )


@dataclass
class BadLines:
    """The lines of a file that hold bytes which are not in its encoding.

    Attributes:
        lines: how many lines were examined.
        is_all: whether these are all lines of the file.
        shown: the first few: `line 751: caf\\xe9 au lait`.
    """

    encoding: str
    lines: int = 1
    count: int = 0
    first_line: int = 0
    last_line: int = 0
    is_all: bool = True
    shown: list[str] = field(default_factory=list)

    def add(self, number: int, text: str) -> None:
        """Count line `number`, of which `text` is a part, once."""
        if number == self.last_line:
            return
        self.count, self.last_line, self.first_line = self.count + 1, number, self.first_line or number
        if len(self.shown) < _SHOWN:
            self.shown.append(f"line {number:,}: {_excerpt(text)}")

    @property
    def seem_foreign(self) -> bool:
        """Whether so many lines have such bytes that the text is likely in another encoding."""
        return self.count > max(1, _FOREIGN * self.lines)

    def notes(self, path: Path, decoding: Decoding) -> list[str]:
        """The lines for the user, if there are any, where bad bytes are not refused."""
        if not self.count:
            return []
        how = "left out" if decoding.bad_bytes == "skip-line" else "read with U+FFFD in place of the bytes"
        lines = "1 line is" if self.count == 1 else f"{self.count:,} lines are"
        held = f"of {self.lines:,}, for {BAD_BYTES} {self.encoding}"
        named = "".join(f"\n  {each}" for each in self.shown)
        doubt = f"\n  So many mean another encoding: name it in {decoding.key}" if self.seem_foreign else ""
        return [f"{path}: {lines} {how}, {held}:{named}{doubt}"]

    def share_line(self) -> str:
        """How many lines of the file it is."""
        number = f"{self.count:,} of its {'' if self.is_all else 'first '}{self.lines:,} lines"
        return f"{number} {'has' if self.count == 1 else 'have'} such bytes"


def _excerpt(text: str) -> str:
    """The text around its first bad byte, with the bytes as in Python."""
    at = next(number for number, character in enumerate(text) if is_damaged(character))
    return escaped_bytes(text[max(0, at - _AROUND) : at + _AROUND].strip())


_UTF_8 = ("utf-8", "utf-8-sig")


def reads_marks(encoding: str) -> bool:
    """Whether a byte order mark decides over this encoding: it is UTF-8, in which no text begins so."""
    return codecs.lookup(encoding).name in _UTF_8


def mark_note(name: object, encoding: str) -> str:
    """The line for the user about a text whose byte order mark decided for `encoding`."""
    return f"{name}: is read as {encoding.upper()}, as its byte order mark says, not as UTF-8"


def new_decoder(encoding: str, errors: str = "strict") -> codecs.IncrementalDecoder:
    """A decoder of bytes, a block at a time. Raises `LookupError` for an unknown encoding."""
    make = codecs.getincrementaldecoder(encoding)
    if make in [codecs.getincrementaldecoder(name) for name in _UTF_8]:
        return MarkedDecoder(errors)
    return make(errors)


class MarkedDecoder(codecs.IncrementalDecoder):
    """Decodes UTF-8, or UTF-16 or UTF-32 if the first bytes are its byte order mark.

    The first block must hold all of the mark. A mark of UTF-8 is decoded to U+FEFF, those of the others to
    nothing.
    """

    def __init__(self, errors: str = "strict"):
        super().__init__(errors)
        self._inner: codecs.IncrementalDecoder | None = None

    def decode(self, input: bytes, final: bool = False) -> str:  # pyright: ignore[reportIncompatibleMethodOverride]
        if self._inner is None:
            self._inner = codecs.getincrementaldecoder(marked_encoding(input) or "utf-8")(self.errors)
        return self._inner.decode(input, final)

    def getstate(self) -> tuple[bytes, int]:
        return (b"", 0) if self._inner is None else self._inner.getstate()


_START = 512
_FEWEST = 8
"""Characters; fewer prove nothing."""
_NUL = 0.4
"""Smallest share of upper bytes that are 0 in text that is mostly Latin; other encodings have none."""
_WIDE = {"utf-32-le": (1, 2, 3), "utf-32-be": (0, 1, 2), "utf-16-le": (1, 3), "utf-16-be": (0, 2)}
"""Encoding -> which bytes of each four are 0."""


def marked_encoding(start: bytes) -> str | None:
    """utf-16 or utf-32, if the text begins with its byte order mark."""
    if start.startswith((codecs.BOM_UTF32_LE, codecs.BOM_UTF32_BE)):
        return "utf-32"
    return "utf-16" if start.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)) else None


def wide_encoding(start: bytes) -> str | None:
    """utf-16 or utf-32 (with the order of bytes if there is no byte order mark); None: another encoding."""
    if marked := marked_encoding(start):
        return marked
    head = start[: min(_START, len(start) // 4 * 4)]
    if len(head) < 2 * _FEWEST:
        return None
    zeros = [head[place::4].count(0) for place in range(4)]
    many = [4 * count >= _NUL * len(head) for count in zeros]
    none = [count == 0 for count in zeros]
    for name, wide in _WIDE.items():
        if all(many[place] if place in wide else none[place] for place in range(4)):
            return name
    return None
