"""Texts from the command line, a file or a pipe -> lines with their places."""

import itertools
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from bertcli.corpus.encodings import mark_note, marked_encoding, new_decoder
from bertcli.samples import SENTENCES
from bertcli.system.errors import UserError
from bertcli.system.files import has_file, open_input
from bertcli.system.remote import given_path
from bertcli.system.terminal import say

STANDARD_INPUT = "standard input"


@dataclass(frozen=True)
class Line:
    """A text and its place.

    Attributes:
        where: the place for messages: `text 2`, or `reviews.txt, line 17`.
    """

    text: str
    where: str


def read_lines(texts: Sequence[str], file: str | Path | None) -> Iterator[Line]:
    """The `texts` themselves, or the lines of `file`, or those of standard input if neither is given.

    `file` may be a name in `SENTENCES`. `-` as the only text or as the file means standard input. Lines are
    read one at a time. A blank text or line is an empty text, so that results and texts are parallel.

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
        bundled = SENTENCES.get(str(file))
        try:
            path = given_path(str(file)) if bundled is None or has_file(Path(file)) else bundled
            return _texts(open_input(path), str(path))
        except OSError as error:
            raise UserError(f"{file}: cannot be read: {error.strerror}") from None
    if sys.stdin.isatty() and not texts and file is None:
        raise UserError("no text: give it after MODEL, or --input FILE, or pipe it in")
    return _texts(sys.stdin.buffer, STANDARD_INPUT)


def _checked(text: str, where: str) -> Line:
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:  # Python decodes such bytes of a command line to lone surrogates
        raise UserError(f"{where}: is not UTF-8") from None
    return Line(text, where)


def _texts(stream: BinaryIO, name: str) -> Iterator[Line]:
    numbered = enumerate(decoded_lines(stream, name), start=1)
    lines = (Line(text.rstrip("\r"), f"{name}, line {number}") for number, text in numbered)
    held_back = []  # because a file with blank lines alone is refused before any answer
    for line in lines:
        held_back.append(line)
        if line.text.strip():
            break
    else:
        raise UserError(f"{name}: holds no text")
    yield from held_back
    yield from lines


def decoded_lines(stream: BinaryIO, name: str) -> Iterator[str]:
    """The lines as they come, without newlines. They are UTF-8, or what a byte order mark says, with a note.

    Raises `UserError` (while iterating) for bytes that are not in the encoding.
    """
    with stream:
        first = stream.readline()  # no mark has a byte of a newline
        mark = marked_encoding(first)
        decoder = new_decoder("utf-8", first)
        if mark is not None:
            say(mark_note(name, mark))
        number, offset, rest = 1, 0, ""
        for raw in itertools.chain([first], stream, [b""]):
            held_back = len(decoder.getstate()[0])
            try:
                text = decoder.decode(raw, final=not raw)
            except UnicodeDecodeError as error:
                number += error.object[: error.start].decode(error.encoding).count("\n")
                raise _not_text(f"{name}, line {number}", mark, offset - held_back + error.start) from None
            if offset == 0:
                text = text.removeprefix("\ufeff")
            offset += len(raw)
            *lines, rest = (rest + text).split("\n")
            number += len(lines)
            yield from lines
        if rest:
            yield rest


def _not_text(where: str, mark: str | None, offset: int) -> UserError:
    if mark is not None:
        return UserError(f"{where}: not {mark.upper()} at byte {offset}; make the file again from its source")
    return UserError(
        f"{where}: not UTF-8 at byte {offset}; convert it first, for example: iconv -f latin1 -t utf-8"
    )
