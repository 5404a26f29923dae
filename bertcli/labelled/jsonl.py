"""A file with a JSON object a line -> its rows."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain
from pathlib import Path

from bertcli.errors import UserError
from bertcli.labelled.bad_rows import BadRow
from bertcli.labelled.json_text import parse_json
from bertcli.labelled.table import Row, Table
from bertcli.text.streams import read_lines


def open_jsonl(path: Path, encoding: str) -> Table:
    """The rows; the first one's keys are the columns. Blank lines are passed over.

    Raises `UserError` where there is no object, or the first line is none.
    """
    rows = _rows(path, encoding)
    first = next(rows, None)
    if first is None:
        raise UserError(f"{path}: is empty; a JSON object a line was expected")
    if isinstance(first, BadRow):
        raise first
    return Table(path, tuple(first.values), chain([first], rows))


def _rows(path: Path, encoding: str) -> Iterator[Row | BadRow]:
    for number, line in enumerate(read_lines(path, encoding, key="task.encoding"), start=1):
        if not line or line.isspace():
            continue
        where = f"{path}, line {number}"
        try:
            value = parse_json(line, path, number)
            if not isinstance(value, dict):
                raise BadRow(f"{where}: {line.strip()[:40]} is no JSON object; one a line was expected")
            row: Row | BadRow = Row(where, number, value)
        except BadRow as bad:
            row = bad
        yield row
