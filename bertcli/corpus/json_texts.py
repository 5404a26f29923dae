"""A file of JSON values, one per line or in one list -> the text and place of each, streamed."""

import json
import re
from collections.abc import Iterator
from typing import NamedTuple

from bertcli.config.section import Decoding
from bertcli.corpus.encodings import is_damaged
from bertcli.corpus.streams import LONGEST_LINE, Progress, decoded_blocks, numbered_lines, silent
from bertcli.system.errors import UserError
from bertcli.system.remote import InputPath

_BLANKS = re.compile(r"[ \t\r\n]*")
_WORDS = ("true", "false", "null", "NaN", "Infinity", "-Infinity")
_CUT = {"", ".", "e", "E", "e+", "e-", "E+", "E-"} | {
    word[:end] for word in _WORDS for end in range(1, len(word))
}
"""The unread rest of a value that was cut: nothing, or a part of a number or of a word."""
_LONGEST_CUT = max(map(len, _CUT))


class JsonText(NamedTuple):
    """The text of one value, as it is written in the file.

    Attributes:
        place: the place in the file: `line 17`, or in a list `object 3 (line 17)`.
        number: the number of the line, or of the value in the list, from 1.
        text: the text; a blank line also gives one.
    """

    place: str
    number: int
    first_line: int
    text: str


def read_json_texts(path: InputPath, decoding: Decoding, progress: Progress = silent) -> Iterator[JsonText]:
    """Each line of the file, or each value if the file is one list. Memory holds one value at a time.

    The setting `skip-line` leaves out lines and values with bytes that are not in the encoding. Lines may be
    any text; the values of a list are JSON. Raises `UserError` as `read_lines` does, and also for a list that
    is not JSON, for text after it, and for a value longer than a line may be.
    """
    if is_json_list(path, decoding):
        values = _ListReader(path, decoded_blocks(path, decoding, progress)).values()
        yield from (value for value in values if not is_damaged(value.text))
        return
    for number, line in numbered_lines(path, decoding, progress):
        yield JsonText(f"line {number}", number, number, text=line)


def is_json_list(path: InputPath, decoding: Decoding) -> bool:
    """True if the first character that is no blank is `[`. Raises `UserError` as `read_lines` does."""
    starts = (block.lstrip() for block in decoded_blocks(path, decoding, silent))
    return next(filter(None, starts), "").startswith("[")


class _ListReader:
    """A reader of the values of a list, one by one, that holds only as much text as the current value needs.

    Values are decoded here only to find their ends; the caller decodes the text of a value like a line.
    """

    def __init__(self, path: InputPath, blocks: Iterator[str]):
        self._path, self._blocks = path, blocks
        self._decoder = json.JSONDecoder()
        self._text, self._at = "", 0
        self._line, self._dropped = 1, 0
        """The line of the place `_at`; the number of dropped characters before `_text` on the line of its
        start."""

    def values(self) -> Iterator[JsonText]:
        self._next_mark("[")
        if self._peek() == "]":
            self._next_mark("]")
        else:
            number, mark = 0, ","
            while mark == ",":
                number += 1
                self._expect_more()
                line = self._line
                yield JsonText(f"object {number} (line {line})", number, line, text=self._next_value())
                mark = self._next_mark(",]")
        if self._peek():
            raise self._error(self._at, "there is more text after the end of the list")

    def _peek(self) -> str:
        """Move `_at` to the next character that is no blank, and return it; "" at the end of the file."""
        while True:
            blanks = _BLANKS.match(self._text, self._at)
            assert blanks is not None
            self._advance(blanks.end())
            if self._at < len(self._text):
                return self._text[self._at]
            if not self._read_on():
                return ""

    def _expect_more(self) -> str:
        if not (following := self._peek()):
            raise self._error(self._at, "the file ends before its list does")
        return following

    def _next_mark(self, expected: str) -> str:
        mark = self._expect_more()
        if mark not in expected:
            raise self._error(self._at, f"expected {' or '.join(expected)}, found {mark}")
        self._advance(self._at + 1)
        return mark

    def _next_value(self) -> str:
        while True:
            size = len(self._text) - self._at
            try:
                end = self._decoder.raw_decode(self._text, self._at)[1]
                after = self._text[end : end + _LONGEST_CUT + 1]
                if after not in _CUT or not self._read_on(size):  # else the end of the text may cut a number
                    break
            except json.JSONDecodeError as error:
                is_cut = self._may_go_on(error)
                if not (is_cut and self._read_on(size)):
                    problem = "the file ends before its list does" if is_cut else error.msg
                    raise self._error(error.pos, problem) from None
            except (ValueError, RecursionError) as error:
                raise self._error(self._at, str(error)) from None
            if size > LONGEST_LINE:
                raise self._error(self._at, f"an object of more than {LONGEST_LINE:,} characters")
        value = self._text[self._at : end]
        self._advance(end)
        return value

    def _may_go_on(self, error: json.JSONDecodeError) -> bool:
        """True if more text could make the value JSON."""
        rest = self._text[error.pos :].strip()
        is_escape = error.msg.startswith("Invalid \\uXXXX") and len(rest) <= len("u20ac")
        return rest in _CUT or is_escape or error.msg.startswith("Unterminated string")

    def _read_on(self, at_least: int = 1) -> bool:
        """Append at least this many characters; False if the file has ended. Callers double the text of a
        value, so that it is decoded few times."""
        more, size = list[str](), 0
        while size < at_least and (block := next(self._blocks, None)) is not None:
            more.append(block)
            size += len(block)
        if size:
            self._dropped = self._column(self._at) - 1
            self._text, self._at = "".join([self._text[self._at :], *more]), 0
        return size > 0

    def _advance(self, to: int) -> None:
        self._line += self._text.count("\n", self._at, to)
        self._at = to

    def _column(self, at: int) -> int:
        """The column of a place in the text, from 1."""
        newline = self._text.rfind("\n", 0, at)
        return at - newline if newline >= 0 else self._dropped + at + 1

    def _error(self, at: int, problem: str) -> UserError:
        line = self._line + self._text.count("\n", self._at, at)
        return UserError(
            f"{self._path}, line {line}, column {self._column(at)}: not JSON: {problem}; expected a list of "
            "objects, since the file begins with ["
        )
