"""Rows of a table -> texts or pairs with their labels: classification and regression."""

from __future__ import annotations

import math
import re
import sys
import textwrap
from collections.abc import Iterator

from bertcli.config.finetune import TaskSettings
from bertcli.errors import UserError
from bertcli.examples.bad_rows import BadRow, SkippedRow, each
from bertcli.examples.examples import TextExample
from bertcli.examples.label_cells import flagged_labels, one_label, several_labels
from bertcli.examples.table import Row, Table

Label = str | tuple[str, ...] | float

_DECIMAL_COMMA = re.compile(r"[+-]?\d+,\d+")


def text_examples(table: Table, settings: TaskSettings, labeled: bool) -> Iterator[TextExample | BadRow]:
    """An example for each row. Raises `UserError` if a column is missing, or cannot be the label's."""
    columns = [table.column(column, "task.text") for column in settings.text_columns]
    labels = [table.column(column, "task.label") for column in settings.label_columns] if labeled else []
    if labeled and not labels:
        table.label(None)
    if same := sorted({*columns} & {*labels}):
        raise UserError(
            f"{table.path}: task.text and task.label both name the column {same[0]!r}: the model would "
            "read its answer. Name two columns"
        )

    def example(row: Row) -> TextExample:
        text_a, *text_b = (row.text(column) for column in columns)
        if len(labels) > 1:
            value = flagged_labels(row, labels)
        else:
            value = _label(row, labels[0], settings) if labels else None
            value = sys.intern(value) if type(value) is str else value  # one text for all rows
        return TextExample(row.where, row.values, text_a, text_b=text_b[0] if text_b else None, label=value)

    return each(table.rows, example)


def _label(row: Row, column: str, settings: TaskSettings) -> Label:
    value = row.value(column)
    if isinstance(settings.label, int) and value == column:
        raise UserError(
            f"{row.where}: the label is {value!r}, as in the first line: if that line is not a header, name "
            "the columns in task.columns; if the header is repeated here, delete this line"
        )
    if settings.type == "regression":
        return _number(row, column, settings)
    where = f"{row.where}, column {column!r}"
    read = several_labels if settings.multi_label else one_label
    label = read(value, settings, where)
    found = label if isinstance(label, tuple) else (label,)
    if settings.skip_labels and not set(found).isdisjoint(settings.skip_labels):
        raise SkippedRow(where)
    return label


def _number(row: Row, column: str, settings: TaskSettings) -> float:
    number = read_number(row, column, settings)
    if settings.sigmoid and not 0 <= number <= 1:
        raise BadRow(
            f"{row.where}, column {column!r}: {number:g} is not from 0 to 1, as task.sigmoid: true needs it; "
            "give such numbers, or set task.sigmoid: false"
        )
    return number


def read_number(row: Row, column: str, settings: TaskSettings) -> float:
    """The number in a column. Raises `BadRow` if it is none, or not finite."""
    value, where = row.value(column), f"{row.where}, column {column!r}"
    try:
        number = float(value)
    except (TypeError, ValueError, OverflowError):
        number = math.nan
    if isinstance(value, bool) or not math.isfinite(number):
        shown = textwrap.shorten(repr(value), 60, placeholder="...")
        if isinstance(value, str) and _DECIMAL_COMMA.fullmatch(value.strip()):
            point = value.strip().replace(",", ".")
            raise BadRow(
                f"{where}: {shown} is not a number; its comma may be decimal or separate thousands: write "
                f"numbers with a decimal point and no commas, such as {point}"
            )
        raise BadRow(f"{where}: {shown} is not a number; task.type: {settings.type} needs one, such as 3.5")
    return number
