"""A file with a JSON object a line -> its rows."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import chain
from pathlib import Path

from bertcli.errors import UserError
from bertcli.examples.bad_rows import BadRow, BlankLines
from bertcli.examples.json_text import parse_json
from bertcli.examples.table import Row, Table
from bertcli.text.streams import read_lines


def open_jsonl(path: Path, encoding: str, report: Callable[[str], None]) -> Table:
    """The rows; the first one's keys are the columns. Blank lines hold no row, and are reported.

    Raises `UserError` where there is no object, or the first line is none.
    """
    rows = _rows(path, encoding, report)
    first = next(rows, None)
    if first is None:
        raise UserError(f"{path}: is empty; a JSON object a line was expected")
    if isinstance(first, BadRow):
        raise first
    return Table(path, tuple(first.values), chain([first], rows))


def _rows(path: Path, encoding: str, report: Callable[[str], None]) -> Iterator[Row | BadRow]:
    blank_lines = BlankLines()
    for number, line in enumerate(read_lines(path, encoding, key="task.encoding"), start=1):
        if not line or line.isspace():
            blank_lines.blank()
            continue
        blank_lines.row()
        where = f"{path}, line {number}"
        try:
            value = parse_json(line, path, number)
            if not isinstance(value, dict):
                raise BadRow(f"{where}: {line.strip()[:40]} is no JSON object; one a line was expected")
            row: Row | BadRow = Row(where, number, value)
        except BadRow as bad:
            row = bad
        yield row
    blank_lines.tell(path, report)
