"""Rows of a table -> questions with choices: multiple choice."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from bertcli.config.finetune import TaskSettings
from bertcli.examples.bad_rows import BadRow, each
from bertcli.examples.examples import ChoiceExample
from bertcli.examples.json_text import parse_json
from bertcli.examples.table import Row, Table, scalar_text


def choice_examples(table: Table, settings: TaskSettings, labeled: bool) -> Iterator[ChoiceExample | BadRow]:
    """An example for each row. Its choices are a list, at least two, or a column each.

    A label is the text of the right choice, or its number, from 0. Raises `UserError` if a column is missing.
    """
    columns = [table.column(column, "task.text") for column in settings.text_columns]
    given = settings.choices
    assert given is not None
    is_list = not isinstance(given, list)
    choice_columns = [table.column(column, "task.choices") for column in ([given] if is_list else given)]
    label = table.label(settings.label) if labeled else None

    def example(row: Row) -> ChoiceExample:
        text_a, *text_b = (row.text(column) for column in columns)
        if is_list:
            choices = _listed(row, choice_columns[0], table)
        else:
            choices = tuple(row.text(column) for column in choice_columns)
        for number, choice in enumerate(choices):
            if not choice.strip():
                raise BadRow(f"{row.where}: choice {number} (counted from 0) is empty")
        if len(choices) < 2:
            raise BadRow(f"{row.where}: {len(choices)} choice; expected at least two")
        right = None if label is None else _right_choice(row.value(label), choices, row.where)
        return ChoiceExample(
            row.where, row.values, text_a, text_b=text_b[0] if text_b else None, choices=choices, label=right
        )

    return each(table.rows, example)


def _listed(row: Row, column: str, table: Table) -> tuple[str, ...]:
    """The choices in a column that holds a list of them; in text files the list is JSON."""
    value = row.value(column)
    where = f"{row.where}, column {column!r}"
    if isinstance(value, str) and value.lstrip().startswith("["):
        value = parse_json(value, table.path, row.number)
    if not isinstance(value, list):
        raise BadRow(
            f'{where}: {value!r} is not a list of choices; expected a JSON list such as ["yes", "no"], or a '
            "column for each choice (task.choices: [a, b])"
        )
    return tuple("" if choice is None else scalar_text(choice, where) for choice in value)


def _right_choice(value: Any, choices: tuple[str, ...], where: str) -> int:
    """The number of the right choice, given as its number (a JSON number, or digits) or its text."""
    text = "" if value is None else scalar_text(value, where).strip()
    by_number = int(text) if text.isdecimal() and int(text) < len(choices) else None
    stripped = [choice.strip() for choice in choices]
    by_text = stripped.index(text) if isinstance(value, str) and text in stripped else None
    if by_number is None and by_text is None:
        raise BadRow(
            f"{where}: the label {text!r} is neither the number of a choice, 0 (the first) to "
            f"{len(choices) - 1}, nor the text of one"
        )
    if by_number is not None and by_text is not None and by_number != by_text:
        raise BadRow(
            f"{where}: the label {text!r} is the text of choice {by_text}, and the number of another one; in "
            "JSON lines a label that is a JSON number counts as the number alone"
        )
    right = by_number if by_text is None else by_text
    assert right is not None
    return right
