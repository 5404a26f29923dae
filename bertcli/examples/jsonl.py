"""A file of JSON objects, one a line or in a list -> its rows."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import chain
from pathlib import Path

from bertcli.config.decoding import Decoding
from bertcli.errors import UserError
from bertcli.examples.bad_rows import BadRow, without_blank_lines
from bertcli.examples.json_text import parse_json
from bertcli.examples.table import Row, Table
from bertcli.text.json_texts import read_json_texts

_EXPECTED = "expected JSON objects, one a line or in a list"


def open_jsonl(path: Path, decoding: Decoding, report: Callable[[str], None]) -> Table:
    """The rows; the keys of the first are the columns. Blank lines are no rows, and are reported.

    Raises `UserError` if the file is empty, or what comes first in it is no object.
    """
    rows = without_blank_lines(_rows(path, decoding), path, report)
    first = next(rows, None)
    if first is None:
        raise UserError(f"{path}: is empty; {_EXPECTED}")
    if isinstance(first, BadRow):
        raise UserError(f"{first}; {_EXPECTED}")
    return Table(path, tuple(first.values), chain([first], rows))


def _rows(path: Path, decoding: Decoding) -> Iterator[Row | BadRow | None]:
    """None: a blank line."""
    for place, number, first_line, text in read_json_texts(path, decoding):
        if not text or text.isspace():
            yield None
            continue
        where = f"{path}, {place}"
        try:
            value = parse_json(text, path, first_line)
            if not isinstance(value, dict):
                raise BadRow(f"{where}: {text.strip()[:40]} is not a JSON object")
            row: Row | BadRow = Row(where, number, value)
        except BadRow as bad:
            row = bad
        yield row
