"""A TSV or CSV file -> its records: fields, with or without quotes around them."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from pathlib import Path

from bertcli.config.decoding import Decoding
from bertcli.config.finetune import TaskSettings
from bertcli.errors import UserError
from bertcli.text.bad_bytes import is_damaged
from bertcli.text.streams import LONGEST_LINE, all_lines

Record = tuple[int, list[str]]
"""The number of its first line, from 1, and its fields; a blank line has none."""


class _BadQuotes(UserError):
    """A quote that is not closed, or not at the end of a field."""


def find_separator(path: Path, format: str, settings: TaskSettings) -> str:
    """`task.separator`, or that of the format: in csv the first of comma, semicolon and tab that occurs in
    the first line. Where the comma is the decimal point, spreadsheets separate by semicolons."""
    if settings.separator is not None or format == "tsv":
        return settings.separator or "\t"
    first_line = next((line for line in _lines(path, settings.decoding) if line), "")
    return next((separator for separator in (",", ";", "\t") if separator in first_line), ",")


def read_records(path: Path, format: str, settings: TaskSettings, separator: str) -> Iterator[Record]:
    """The records, in order. Raises `UserError` (while iterating) for a quote that is not closed."""
    is_quoted = settings.quoting == "csv" or (
        settings.quoting == "auto" and (format == "csv" or _makes_sense_quoted(path, settings, separator))
    )
    lines = _lines(path, settings.decoding)
    records: Iterator[Record] = (
        _quoted(path, lines, separator)
        if is_quoted
        else ((number, line.split(separator) if line else []) for number, line in enumerate(lines, start=1))
    )
    if settings.bad_bytes != "skip-line":
        return records
    return (record for record in records if not any(map(is_damaged, record[1])))


def _lines(path: Path, decoding: Decoding) -> Iterator[str]:
    return (line.removesuffix("\r") for line in all_lines(path, decoding))


def _quoted(path: Path, lines: Iterator[str], separator: str) -> Iterator[Record]:
    csv.field_size_limit(LONGEST_LINE)  # a field may hold a long document
    reader = csv.reader((f"{line}\n" for line in lines), delimiter=separator, strict=True)
    begins = 1
    try:
        for fields in reader:
            yield begins, fields
            begins = reader.line_num + 1
    except csv.Error as error:
        raise _BadQuotes(
            f"{path}, line {begins}: the quotes of the record that begins here do not fit ({error}); a "
            'quoted field ends with " right before the separator, and a quote inside it is doubled. If '
            "quotes are plain text in this file, set task.quoting: none"
        ) from None


def _makes_sense_quoted(path: Path, settings: TaskSettings, separator: str) -> bool:
    """Whether quotes enclose fields: the rule of `task.quoting: auto`, applied to all of the file."""
    own_lines: list[str] = []

    def watched() -> Iterator[str]:
        for line in _lines(path, settings.decoding):
            if line:
                own_lines.append(line)
            yield line

    width = None
    try:
        for _, fields in _quoted(path, watched(), separator):
            if not fields:
                continue
            width = width or len(fields)
            is_merged = len(own_lines) > 1 and all(line.count(separator) + 1 == width for line in own_lines)
            is_other = len(fields) < width or (len(fields) > width and not settings.ignore_extra_fields)
            if is_other or is_merged:
                return False
            own_lines.clear()
    except _BadQuotes:
        return False
    return True
