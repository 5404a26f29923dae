"""Rows of a table -> questions with choices: multiple choice."""

from __future__ import annotations

from collections.abc import Iterator

from bertcli.config.task import TaskSettings
from bertcli.system.errors import UserError
from bertcli.tasks.examples import BadRow, ChoiceExample, each
from bertcli.tasks.label_cells import one_spelling, written_list
from bertcli.tasks.rows import parse_json
from bertcli.tasks.table import Row, Table, scalar_text

_LETTERS = "ABCDEFGHIJ"


def choice_examples(table: Table, settings: TaskSettings, labeled: bool) -> Iterator[ChoiceExample | BadRow]:
    """An example for each row. The choices, at least two, are a list in one column, or a column each.

    A label is the text of the right choice, its number (from 0, or from `first_choice`), its letter, or the
    name of its column. Raises `UserError` if a column is missing, or numbers count from another first one.
    """
    columns = [table.column(column, "task.text") for column in settings.text_columns]
    given = settings.choices
    assert given is not None
    is_list = not isinstance(given, list)
    choice_columns = [table.column(column, "task.choices") for column in ([given] if is_list else given)]
    label = table.label(settings.label) if labeled else None
    columns_of_choices = () if is_list else tuple(choice_columns)
    numbering = _Numbering(settings.first_choice)

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
        right = None if label is None else numbering.right(row, label, choices, columns_of_choices)
        return ChoiceExample(
            row.where, row.values, text_a, text_b=text_b[0] if text_b else None, choices=choices, label=right
        )

    return each(table.rows, example)


def _listed(row: Row, column: str, table: Table) -> tuple[str, ...]:
    """The choices in a column that holds a list of them; in text files the list is JSON."""
    value = row.value(column)
    where = f"{row.where}, column {column!r}"
    if isinstance(value, str) and value.lstrip().startswith("["):
        listed = written_list(value)
        value = parse_json(value, table.path, row.number) if listed is None else listed
    if not isinstance(value, list):
        raise BadRow(
            f'{where}: {value!r} is not a list of choices; expected a JSON list such as ["yes", "no"], or a '
            "column for each choice (task.choices: [a, b])"
        )
    return tuple("" if choice is None else scalar_text(choice, where) for choice in value)


class _Numbering:
    """How the labels of a file number the choices."""

    def __init__(self, first: int | None):
        self._is_given, self._first = first is not None, first or 0
        self._seen_first = False

    def right(self, row: Row, column: str, choices: tuple[str, ...], names: tuple[str, ...]) -> int:
        """The number of the right choice, from 0.

        Args:
            names: the names of the columns of the choices; empty if the choices are a list.
        """
        value = row.value(column)
        text = "" if value is None else scalar_text(value, row.where).strip()
        by_number = self._number(one_spelling(text), row.where, len(choices))
        stripped = [choice.strip() for choice in choices]
        by_text = stripped.index(text) if isinstance(value, str) and text in stripped else None
        if by_number is not None and (self._is_given or by_text in (None, by_number)):
            return by_number
        if by_number is not None:
            raise BadRow(
                f"{row.where}: the label {text!r} is the text of choice {by_text}, and the number of another "
                "one; if labels are numbers alone, set task.first_choice: 0 (or 1, if the first choice is 1)"
            )
        letter = _LETTERS.find(text.upper()) if len(text) == 1 else -1
        by_name = names.index(text) if text in names else letter if 0 <= letter < len(choices) else None
        if by_text is None and by_name is None:
            last = self._first + len(choices) - 1
            raise BadRow(
                f"{row.where}: the label {text!r} is neither the number of a choice, {self._first} (the "
                f"first) to {last}, nor its letter, nor the text of one"
            )
        if by_text is not None and by_name is not None and by_text != by_name:
            raise BadRow(
                f"{row.where}: the label {text!r} is the text of one choice, and the name of another"
            )
        right = by_name if by_text is None else by_text
        assert right is not None
        return right

    def _number(self, text: str, where: str, choices: int) -> int | None:
        """The choice with this number, counted from 0; None if there is none.

        Raises `UserError` if the file counts from another first number: if such rows were only left out, the
        labels of all others would be shifted.
        """
        if not text.isdecimal():
            return None
        number, other = int(text), 1 - self._first
        self._seen_first |= number == self._first
        is_beyond = number == (choices if self._first == 0 else 0)
        if is_beyond and not self._seen_first:
            raise UserError(
                f"{where}: the label {text!r} is no choice, if {self._first} is the first of {choices}; if "
                f"the labels count from {other}, set task.first_choice: {other}; else mend this row"
            )
        return number - self._first if 0 <= number - self._first < choices else None
