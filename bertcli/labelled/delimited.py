"""A TSV or CSV file -> its rows, with or without quotes around the fields."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from itertools import chain
from pathlib import Path

from bertcli.config.finetune import TaskSettings
from bertcli.errors import UserError
from bertcli.labelled.bad_rows import BadRow
from bertcli.labelled.table import Row, Table, check_names
from bertcli.text.streams import LONGEST_LINE, read_lines

_SEPARATORS = {"\t": "tabs", ",": "commas", ";": "semicolons"}
"""In csv the first of comma, semicolon and tab that stands in the first line: where a comma is the decimal
point, spreadsheets separate by semicolons."""
Record = tuple[int, list[str]]
"""The number of the line where it begins, from 1, and its fields."""


class _BadQuotes(UserError):
    """A quote that does not close, or not where a field ends."""


def open_delimited(path: Path, format: str, settings: TaskSettings, labelled: bool) -> Table:
    """The rows of a file with a header, or with the names of `settings.columns`; blank lines are passed over.

    A file to predict (not `labelled`) need not be laid out as the training file was: whatever `columns` says,
    its first line is a header if the columns to read stand in it by name, and the label's may be missing.

    Raises:
        UserError: an empty file; a header with a name twice; a header that `columns` says is not there; a
            quote that is not closed.
    """
    separator = "\t" if format == "tsv" else _separator_of_csv(path, settings.encoding)
    is_quoted = settings.quoting == "csv" or (
        settings.quoting == "auto" and (format == "csv" or _makes_sense_quoted(path, settings.encoding))
    )
    records = _records(path, settings.encoding, separator, is_quoted)
    first = next(records, None)
    if first is None:
        raise UserError(f"{path}: is empty; rows of {format} were expected")
    has_header, names = _names(path, first[1], settings, labelled)
    if not has_header:
        records = chain([first], records)
    hint = ""
    if has_header:
        hint = (
            f" (separated by {_SEPARATORS[separator]}; if the file has no header, name them in task.columns)"
        )
    return Table(path, names, _rows(path, names, records), hint)


def _separator_of_csv(path: Path, encoding: str) -> str:
    first_line = next((line for line in _lines(path, encoding) if line), "")
    return next((separator for separator in (",", ";", "\t") if separator in first_line), ",")


def _records(path: Path, encoding: str, separator: str, is_quoted: bool) -> Iterator[Record]:
    lines = _lines(path, encoding)
    return _quoted(path, lines, separator) if is_quoted else _unquoted(lines, separator)


def _lines(path: Path, encoding: str) -> Iterator[str]:
    return (line.removesuffix("\r") for line in read_lines(path, encoding, key="task.encoding"))


def _unquoted(lines: Iterator[str], separator: str) -> Iterator[Record]:
    return ((number, line.split(separator)) for number, line in enumerate(lines, start=1) if line)


def _quoted(path: Path, lines: Iterator[str], separator: str) -> Iterator[Record]:
    csv.field_size_limit(LONGEST_LINE)  # the whole of a long document may stand in a field
    reader = csv.reader((f"{line}\n" for line in lines), delimiter=separator, strict=True)
    begins = 1
    try:
        for fields in reader:
            if fields:
                yield begins, fields
            begins = reader.line_num + 1
    except csv.Error as error:
        raise _BadQuotes(
            f"{path}, line {begins}: the quotes of the record that begins here do not fit ({error}); a "
            'quoted field ends with " right before the separator, and a quote inside it is doubled. If '
            "quotes are plain text in this file, set task.quoting: none"
        ) from None


def _makes_sense_quoted(path: Path, encoding: str) -> bool:
    """Whether quotes enclose fields: the rule that `task.quoting: auto` states, tried on the whole file."""
    own_lines: list[str] = []

    def watched() -> Iterator[str]:
        for line in _lines(path, encoding):
            if line:
                own_lines.append(line)
            yield line

    width = None
    try:
        for _, fields in _quoted(path, watched(), "\t"):
            width = width or len(fields)
            is_merged = len(own_lines) > 1 and all(line.count("\t") + 1 == width for line in own_lines)
            if len(fields) != width or is_merged:
                return False
            own_lines.clear()
    except _BadQuotes:
        return False
    return True


def _names(
    path: Path, first: list[str], settings: TaskSettings, labelled: bool
) -> tuple[bool, tuple[str, ...]]:
    """Whether the first record is a header, and the columns' names."""
    columns = settings.columns
    if columns is None:
        return True, check_names(path, first)
    if [name.strip() for name in first] == columns and labelled:
        raise UserError(f"{path}: the first line is a header, the names in task.columns: leave those out")
    choices = settings.choices if isinstance(settings.choices, list) else [settings.choices]
    read = {column for column in (*settings.text_columns, *choices) if column is not None}
    if not labelled and read <= {name.strip() for name in first}:
        return True, check_names(path, first)
    if not labelled and len(first) < len(columns) and read <= set(columns):  # numbers would count wrongly
        columns = [name for number, name in enumerate(columns) if settings.label not in (number, name)]
    return False, tuple(columns)


def _rows(path: Path, names: tuple[str, ...], records: Iterator[Record]) -> Iterator[Row | BadRow]:
    for number, fields in records:
        where = f"{path}, line {number}"
        if not any(field.strip() for field in fields):  # spreadsheets leave such rows behind
            continue
        if len(fields) == len(names):
            yield Row(where, number, dict(zip(names, fields, strict=True)))
        else:
            quotes = any('"' in field for field in fields)
            hint = "; if quotes enclose fields here, set task.quoting: csv" if quotes else ""
            count = "1 field" if len(fields) == 1 else f"{len(fields)} fields"
            yield BadRow(f"{where}: {count}, not {len(names)} ({', '.join(names)}){hint}")
