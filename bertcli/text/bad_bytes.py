"""Bytes that are not in the encoding of their file: how they are kept apart, counted and shown."""

from __future__ import annotations

import codecs
import re
from dataclasses import dataclass, field
from pathlib import Path

from bertcli.config.decoding import Decoding

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
