"""Encodings of files: bytes that are not in them are kept apart, counted and shown; UTF-16 is recognized."""

import codecs
import re
from dataclasses import dataclass, field

from bertcli.config.section import Decoding
from bertcli.system.remote import InputPath

BAD_BYTES = "bytes that are not"
"""The words before the name of an encoding, in messages."""
BAD_BYTES_KEPT = "bertcli-keep"
"""The error handler of Python's decoders (`errors`) that turns each bad byte into half a character: U+DC00
plus the byte. No text is decoded to these, so bad bytes remain distinct."""
KEPT = re.compile("[\udc00-\udcff]+")
"""One or more consecutive bad bytes, as `BAD_BYTES_KEPT` decodes them."""
_SHOWN, _AROUND = 3, 30
"""The number of bad lines shown, and the characters shown before and after the first bad byte of each."""
_FOREIGN = 0.1
"""The share of lines with bad bytes above which the text is likely in another encoding."""


def _keep(error: UnicodeError) -> tuple[str, int]:
    if not isinstance(error, UnicodeDecodeError):
        raise error
    return "".join(chr(0xDC00 + byte) for byte in error.object[error.start : error.end]), error.end


codecs.register_error(BAD_BYTES_KEPT, _keep)


def is_damaged(text: str) -> bool:
    """True if a decoded text holds kept bad bytes."""
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
    """The text with kept bad bytes in Python's notation: `caf\\xe9`."""
    return KEPT.sub(lambda found: "".join(f"\\x{ord(c) - 0xDC00:02x}" for c in found[0]), text)


def bad_bytes_advice(decoding: Decoding) -> str:
    """The advice for the user about bytes that are not in the encoding."""
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
        lines: the number of lines that were examined.
        count: the number of lines with such bytes.
        is_all: true if all lines of the file were examined.
        shown: the first few lines with such bytes: `line 751: caf\\xe9 au lait`.
    """

    encoding: str
    lines: int = 1
    count: int = 0
    first_line: int = 0
    last_line: int = 0
    is_all: bool = True
    shown: list[str] = field(default_factory=list)

    def add(self, number: int, text: str) -> None:
        """Count line `number`, which contains `text`; calls for the same line count once."""
        if number == self.last_line:
            return
        self.count, self.last_line, self.first_line = self.count + 1, number, self.first_line or number
        if len(self.shown) < _SHOWN:
            self.shown.append(f"line {number:,}: {_excerpt(text)}")

    def notes(self, path: InputPath, decoding: Decoding) -> list[str]:
        """The lines for the user, if any, under a `bad_bytes` that does not refuse such bytes."""
        if not self.count:
            return []
        how = "left out" if decoding.bad_bytes == "skip-line" else "read with U+FFFD in place of the bytes"
        lines = "1 line is" if self.count == 1 else f"{self.count:,} lines are"
        held = f"of {self.lines:,}, for {BAD_BYTES} {self.encoding}"
        named = "".join(f"\n  {each}" for each in self.shown)
        is_foreign = self.count > max(1, _FOREIGN * self.lines)
        doubt = f"\n  So many mean another encoding: name it in {decoding.key}" if is_foreign else ""
        return [f"{path}: {lines} {how}, {held}:{named}{doubt}"]

    def share_line(self) -> str:
        """The words for the number of such lines and of examined lines."""
        number = f"{self.count:,} of its {'' if self.is_all else 'first '}{self.lines:,} lines"
        return f"{number} {'has' if self.count == 1 else 'have'} such bytes"


def _excerpt(text: str) -> str:
    """The text around its first bad byte, with bad bytes in Python's notation."""
    at = next(number for number, character in enumerate(text) if is_damaged(character))
    return escaped_bytes(text[max(0, at - _AROUND) : at + _AROUND].strip())


def reads_marks(encoding: str) -> bool:
    """True if a byte order mark overrides this encoding: UTF-8, in which no text begins with such bytes."""
    return codecs.lookup(encoding).name in ("utf-8", "utf-8-sig")


def mark_note(name: object, encoding: str) -> str:
    """The line for the user about a text that its byte order mark declares to be `encoding`."""
    return f"{name}: is read as {encoding.upper()}, as its byte order mark says, not as UTF-8"


def new_decoder(encoding: str, start: bytes, errors: str = "strict") -> codecs.IncrementalDecoder:
    """A decoder of a text, one block at a time. `start`: its first bytes, with the whole byte order mark.

    The mark of UTF-16 or UTF-32 overrides UTF-8 and is decoded to nothing; that of UTF-8, to U+FEFF.
    """
    if reads_marks(encoding):
        encoding = marked_encoding(start) or "utf-8"
    return codecs.getincrementaldecoder(encoding)(errors)


_START = 512
_FEWEST = 8
"""The fewest characters from which an encoding is guessed."""
_NUL = 0.4
"""The least share of zero bytes among the upper bytes of mostly Latin text; other encodings have none."""
_WIDE = {"utf-32-le": (1, 2, 3), "utf-32-be": (0, 1, 2), "utf-16-le": (1, 3), "utf-16-be": (0, 2)}
"""Encoding -> the places, in each four bytes, that are 0."""


def marked_encoding(start: bytes) -> str | None:
    """The encoding utf-16 or utf-32 if the text begins with its byte order mark, else None."""
    if start.startswith((codecs.BOM_UTF32_LE, codecs.BOM_UTF32_BE)):
        return "utf-32"
    return "utf-16" if start.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)) else None


def wide_encoding(start: bytes) -> str | None:
    """The encoding utf-16 or utf-32, with its byte order if there is no mark; None for other encodings."""
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
