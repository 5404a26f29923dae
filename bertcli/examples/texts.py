"""Rows of a table -> texts or pairs with their labels: classification and regression."""

from __future__ import annotations

import math
import re
import textwrap
from collections.abc import Iterator
from typing import Any

from bertcli.config.finetune import TaskSettings
from bertcli.errors import UserError
from bertcli.examples.bad_rows import BadRow, each
from bertcli.examples.examples import TextExample
from bertcli.examples.table import Row, Table, scalar_text

Label = str | tuple[str, ...] | float

_DECIMAL_COMMA = re.compile(r"[+-]?\d+,\d+")


def text_examples(table: Table, settings: TaskSettings, labeled: bool) -> Iterator[TextExample | BadRow]:
    """An example for each row. Raises `UserError` if a column is missing, or cannot be the label's."""
    columns = [table.column(column, "task.text") for column in settings.text_columns]
    label = table.label(settings.label) if labeled else None

    def example(row: Row) -> TextExample:
        text_a, *text_b = (row.text(column) for column in columns)
        value = None if label is None else _label(row, label, settings)
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
    if settings.multi_label:
        return _labels(value, where)
    text = "" if value is None else scalar_text(value, where).strip()
    if not text:
        raise BadRow(f"{where}: no label")
    return text


def _number(row: Row, column: str, settings: TaskSettings) -> float:
    number = read_number(row, column, settings)
    if settings.sigmoid and not 0 <= number <= 1:
        raise BadRow(
            f"{row.where}, column {column!r}: {number:g} is not from 0 to 1, as task.sigmoid: true needs it; "
            "give such numbers, or set task.sigmoid: false"
        )
    return number


def _labels(value: Any, where: str) -> tuple[str, ...]:
    """Of a list of labels, or a text with commas between them: each label once, in order."""
    if value is None:
        return ()
    parts = value if isinstance(value, list) else scalar_text(value, where).split(",")
    labels = [scalar_text(part, where).strip() for part in parts]
    return tuple(dict.fromkeys(label for label in labels if label))


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
