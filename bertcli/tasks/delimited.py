"""A TSV or CSV file -> its records: fields, with or without quotes around them."""

import csv
from collections.abc import Iterable, Iterator
from itertools import chain

from bertcli.corpus.encodings import is_damaged
from bertcli.corpus.streams import LONGEST_LINE, all_lines
from bertcli.system.errors import UserError
from bertcli.system.remote import InputPath
from bertcli.tasks.rows import format_hint
from bertcli.tasks.table import BadRow, LabeledFile, Row, Table, check_names, without_blank_lines

Record = tuple[int, list[str]]
"""The number of a record's first line, from 1, and its fields; a blank line has no fields."""


class _BadQuotes(UserError):
    """A quote that is not closed, or not at the end of a field."""


def find_separator(file: LabeledFile, format: str) -> str:
    """`task.separator`, or the separator of the format: in csv that of the first line (`separator_in`)."""
    if file.settings.separator is not None or format == "tsv":
        return file.settings.separator or "\t"
    return separator_in(next(filter(None, _lines(file)), ""))


SEPARATORS = {",": "commas", ";": "semicolons", "\t": "tabs"}
"""The separators of csv, as they are looked for, and their names in messages. Spreadsheets write semicolons
where the comma is the decimal point."""


def separator_in(header: str, separators: Iterable[str] = SEPARATORS) -> str:
    """The first of `separators` that occurs in a file's first line, else a comma."""
    return next((separator for separator in separators if separator in header), ",")


def _records(file: LabeledFile, format: str, separator: str) -> Iterator[Record]:
    """The records, in order. Raises `UserError` (while iterating) for a quote that is not closed."""
    lines, quoting = _lines(file), file.settings.quoting
    makes_sense = quoting == "auto" and (format == "csv" or _makes_sense_quoted(file, separator))
    if quoting == "csv" or makes_sense:
        records = _quoted(file.path, lines, separator)
    else:
        records = ((number, line.split(separator) if line else []) for number, line in enumerate(lines, 1))
    if file.settings.bad_bytes != "skip-line":
        return records
    return (record for record in records if not any(map(is_damaged, record[1])))


def _lines(file: LabeledFile) -> Iterator[str]:
    return (line.removesuffix("\r") for line in all_lines(file.path, file.settings.decoding))


def _quoted(path: InputPath, lines: Iterator[str], separator: str) -> Iterator[Record]:
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


def _makes_sense_quoted(file: LabeledFile, separator: str) -> bool:
    """True if quotes enclose fields: the rule of `task.quoting: auto`, applied to all of the file."""
    own_lines: list[str] = []

    def watched() -> Iterator[str]:
        for line in _lines(file):
            if line:
                own_lines.append(line)
            yield line

    width = None
    try:
        for _, fields in _quoted(file.path, watched(), separator):
            if not fields:
                continue
            width = width or len(fields)
            is_merged = len(own_lines) > 1 and all(line.count(separator) + 1 == width for line in own_lines)
            is_longer = len(fields) > width and not file.settings.ignore_extra_fields
            if is_merged or is_longer or len(fields) < width:
                return False
            own_lines.clear()
    except _BadQuotes:
        return False
    return True


def open_delimited(file: LabeledFile, format: str) -> Table:
    """The rows of a file with a header, or with the names of `settings.columns`.

    Rows without any text are skipped in a labeled file, since spreadsheets leave such rows behind. A file to
    predict keeps them as rows with an empty text, since each row has a prediction; it also keeps blank lines
    of a table with one column. Blank lines of a table with several columns are no rows, and are reported.

    A file to predict (not `labeled`) may have another layout than the training file: its first line is a
    header if it names the columns to read, whatever `columns` says, and the label's column may be missing.

    `note` is called with the number of rows whose extra fields were ignored, after the last row.

    Raises:
        UserError: an empty file; a header with a name twice, or in spite of `columns`; a quote that is not
            closed.
    """
    path, labeled = file.path, file.labeled
    separator = find_separator(file, format)
    records = _records(file, format, separator)
    blank: list[Record] = []
    for first in records:
        if first[1]:
            break
        blank.append(first)
    else:
        raise UserError(f"{path}: is empty; expected rows of {format}")
    has_header, names = _names(file, first[1])
    if not has_header:
        records = chain(blank, [first], records)
    if labeled:
        records = (record for record in records if any(field.strip() for field in record[1]))
    if file.settings.ignore_extra_fields:
        records = _cut_rows(file, len(names), records)
    hint = ""
    if has_header:
        by = f"separated by {SEPARATORS.get(separator, repr(separator))}"
        other = "; if another character separates fields, name it in task.separator" * (len(names) == 1)
        hint = f" ({by}; if the file has no header, name them in task.columns{other})"
    if labeled:
        rows = (_row(path, names, record) for record in records)
    else:
        rows = without_blank_lines(_rows(path, names, records), file)
    return Table(file, names, rows, hint=hint + format_hint(first[1][0]))


def _cut_rows(file: LabeledFile, width: int, records: Iterator[Record]) -> Iterator[Record]:
    """The records with at most `width` fields."""
    count, with_text, first = 0, 0, 0
    for number, fields in records:
        if extra := fields[width:]:
            count, first = count + 1, first or number
            with_text += any(field.strip() for field in extra)
        yield number, fields[:width]
    if count:
        held = f"{with_text:,} of them hold text" if with_text else "all of them are empty"
        rows = "1 row" if count == 1 else f"{count:,} rows"
        beyond = f"ignored fields beyond the header's {width} in {rows}, first in line {first}"
        file.note(f"{file.path}: {beyond}; {held}")


def _names(file: LabeledFile, first: list[str]) -> tuple[bool, tuple[str, ...]]:
    """Whether the first record is a header, and the columns' names."""
    path, settings, labeled = file.path, file.settings, file.labeled
    columns = settings.columns
    if columns is None:
        return True, check_names(path, first)
    if [name.strip() for name in first] == columns and labeled:
        raise UserError(
            f"{path}: the first line is a header, the names in task.columns: leave task.columns out"
        )
    choices = settings.choices if isinstance(settings.choices, list) else [settings.choices]
    read = {column for column in (*settings.text_columns, *choices) if column is not None}
    if not labeled and read <= {name.strip() for name in first}:
        return True, check_names(path, first)
    if not labeled and len(first) < len(columns) and read <= set(columns):  # numbers would be wrong
        labels = {*settings.label_columns}
        columns = [name for number, name in enumerate(columns) if not {number, name} & labels]
    return False, tuple(columns)


def _rows(
    path: InputPath, names: tuple[str, ...], records: Iterator[Record]
) -> Iterator[Row | BadRow | None]:
    """The rows of a file to predict; None for a blank line that is no row."""
    for number, fields in records:
        is_blank = len(names) > 1 and len(fields) < 2 and not "".join(fields).strip()
        yield None if is_blank else _row(path, names, (number, fields or [""]))


def _row(path: InputPath, names: tuple[str, ...], record: Record) -> Row | BadRow:
    number, fields = record
    where = f"{path}, line {number}"
    if len(fields) == len(names):
        return Row(where, number, dict(zip(names, fields, strict=True)))
    quotes = any('"' in field for field in fields)
    hint = "; if quotes enclose fields here, set task.quoting: csv" if quotes else ""
    if len(fields) > len(names):
        hint += "; if fields beyond the header are to be ignored, set task.ignore_extra_fields: true"
    hint += format_hint(fields[0])
    count = "1 field" if len(fields) == 1 else f"{len(fields)} fields"
    return BadRow(f"{where}: {count}, not {len(names)} ({', '.join(names)}){hint}")
