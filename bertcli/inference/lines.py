"""Texts from the command line, a file or a pipe -> lines with their places."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from bertcli.errors import UserError

STANDARD_INPUT = "standard input"


@dataclass(frozen=True)
class Line:
    """A text and its place."""

    text: str
    where: str
    """For messages: `text 2`, or `reviews.txt, line 17`."""


def read_lines(texts: Sequence[str], file: Path | None) -> Iterator[Line]:
    """The `texts` themselves, or the lines of `file`, or those of standard input if neither is given.

    `-` as the only text or as the file means standard input. Lines are read one at a time. A blank text or
    line is an empty text, so that results and texts are parallel.

    Raises `UserError` if there is nothing to read, all is blank, or (while iterating) bytes are not UTF-8.
    """
    if texts and file is not None:
        raise UserError("give the text itself or --input FILE, not both")
    if texts and list(texts) != ["-"]:
        lines = [_checked(text, f"text {number}") for number, text in enumerate(texts, start=1)]
        if not any(line.text.strip() for line in lines):
            raise UserError("the command line holds no text: what is given is empty, or blanks alone")
        return iter(lines)
    if file is not None and str(file) != "-":
        try:
            return _decoded(open(file, "rb"), str(file))
        except OSError as error:
            raise UserError(f"{file}: cannot be read: {error.strerror}") from None
    if sys.stdin.isatty() and not texts and file is None:
        raise UserError("no text: give it after MODEL, or --input FILE, or pipe it in")
    return _decoded(sys.stdin.buffer, STANDARD_INPUT)


def _checked(text: str, where: str) -> Line:
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:  # Python decodes such bytes of a command line to lone surrogates
        raise UserError(f"{where}: is not UTF-8") from None
    return Line(text, where)


def _decoded(stream: BinaryIO, name: str) -> Iterator[Line]:
    blank: list[Line] | None = []
    offset = 0
    with stream:
        for number, raw in enumerate(stream, start=1):
            where = f"{name}, line {number}"
            try:
                text = raw.decode("utf-8-sig" if number == 1 else "utf-8").rstrip("\r\n")
            except UnicodeDecodeError as error:
                raise UserError(
                    f"{where}: not UTF-8 at byte {offset + error.start}; convert it first, for example: "
                    f"iconv -f latin1 -t utf-8"
                ) from None
            offset += len(raw)
            if (
                blank is not None
            ):  # held back, because a file with blank lines alone is refused before any answer
                blank.append(Line(text, where))
                if not text.strip():
                    continue
                yield from blank
                blank = None
            else:
                yield Line(text, where)
    if blank is not None:
        raise UserError(f"{name}: holds no text")
