"""The rows of a table of any format; columns are found by the names or numbers of a config."""

import difflib
import math
import re
import textwrap
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from bertcli.config.task import Column, TaskSettings
from bertcli.system.errors import UserError
from bertcli.system.remote import InputPath
from bertcli.system.terminal import Report

_WHOLE = re.compile(r"([+-]?\d+)\.0*")
_DECIMAL_COMMA = re.compile(r"[+-]?\d+,\d+")


def quiet(line: str) -> None:
    """Drop a line that a run would print."""


@dataclass(frozen=True)
class LabeledFile:
    """A labeled file, or one to predict, and how it is read.

    Attributes:
        path: the file, or a name for other input.
        labeled: whether labels are read; a file to predict need not have them.
        report: called with what may be wrong with the file.
        note: called with how the file is read, if that had to be guessed.
    """

    path: InputPath
    settings: TaskSettings
    labeled: bool = True
    report: Report = quiet
    note: Report = quiet


class BadRow(UserError):
    """A row that cannot be used; its message says where and why. Other rows of the file still can be."""


class SkippedRow(BadRow):
    """A row that is no example, and is left out; its message says why, in the words of a list of rows."""


Raw = TypeVar("Raw")
Made = TypeVar("Made")


def each(rows: Iterable[Raw | BadRow], make: Callable[[Raw], Made]) -> Iterator[Made | BadRow]:
    """`make(row)` for each row, or the `BadRow` that the row is or that `make` raises."""
    for row in rows:
        try:
            made = row if isinstance(row, BadRow) else make(row)
        except BadRow as bad:
            made = bad
        yield made


def without_blank_lines(rows: Iterable[Raw | None], file: LabeledFile) -> Iterator[Raw]:
    """The rows without the blank lines (None), for files whose rows cannot be blank: several columns, JSON.

    Blank lines between rows are reported after the last row, since lines and predictions are not parallel
    there. Blank lines at the end shift nothing, and are not reported.
    """
    between = pending = 0
    for row in rows:
        if row is None:
            pending += 1
            continue
        between, pending = between + pending, 0
        yield row
    if between:
        count = f"{between:,} blank line{'s' * (between > 1)}"
        file.report(f"{file.path}: skipped {count} between the rows; they have no prediction")


@dataclass(frozen=True, slots=True)
class Row:
    """A row of a table.

    Attributes:
        where: `spam.tsv, line 17`, with its first line.
        number: the number of that line, from 1; in a Parquet file or a JSON list, the number of the row.
        values: column -> value; `str`, and in JSON and Parquet any type.
    """

    where: str
    number: int
    values: Mapping[str, Any]

    def value(self, column: str) -> Any:
        """The value of a column. Raises `BadRow` if the row (a JSON object) does not have it."""
        if column not in self.values:
            there = ", ".join(self.values) or "none"
            raise BadRow(f"{self.where}: no key {column!r}; its keys: {there}")
        return self.values[column]

    def text(self, column: str) -> str:
        """The value as text; "" where it is null. Raises `BadRow` for a list or an object."""
        value = self.value(column)
        return "" if value is None else scalar_text(value, f"{self.where}, column {column!r}")


@dataclass(frozen=True)
class Table:
    """A table whose rows are read once, one at a time.

    Attributes:
        names: the names of the columns, in order; each once.
        rows: the rows; a `BadRow` replaces a row that could not be read.
        hint: what to check if a column is missing.
    """

    file: LabeledFile
    names: tuple[str, ...]
    rows: Iterator[Row | BadRow]
    hint: str = ""

    def column(self, column: Column, key: str) -> str:
        """The name of the column that the config's `key` names or numbers. Raises `UserError` if missing."""
        columns = f"the columns: {', '.join(self.names)}{self.hint}"
        if isinstance(column, int):
            if column < len(self.names):
                return self.names[column]
            raise UserError(f"{self.file.path}: {key}: no column {column}, counted from 0; {columns}")
        if column in self.names:
            return column
        near = difflib.get_close_matches(column, self.names, n=1)
        nearest = f"; did you mean {near[0]!r}?" if near else ""
        raise UserError(f"{self.file.path}: {key}: no column {column!r}{nearest}; {columns}")

    def label(self, usual: str | None = None) -> str | None:
        """The name of the label's column; None in a file to predict. `usual`: its name where none is given.

        Raises `UserError` if it is not given, or missing.
        """
        column = usual if self.file.settings.label is None else self.file.settings.label
        assert not isinstance(column, list)  # only a classification has several (`TaskSettings`)
        if not self.file.labeled:
            return None
        if column is None:
            columns = ", ".join(self.names)
            raise UserError(
                f"{self.file.path}: task.label: name the column of the label; the columns: {columns}"
            )
        return self.column(column, "task.label")


def check_names(path: InputPath, names: Sequence[str]) -> tuple[str, ...]:
    """The names of a header, stripped; a column without a name gets its number as name.

    Raises `UserError` for a header without names, or with the same name twice.
    """
    if not any(name.strip() for name in names):
        raise UserError(f"{path}: the header is empty; expected the names of the columns")
    named = tuple(name.strip() or str(number) for number, name in enumerate(names))
    twice = sorted(name for name, times in Counter(named).items() if times > 1)
    if twice:
        raise UserError(
            f"{path}: the header names {', '.join(map(repr, twice))} more than once; give each column "
            "another name"
        )
    return named


def one_spelling(label: str) -> str:
    """The label, with `1` for `1.0`: spreadsheets and data frames write whole numbers like this."""
    whole = _WHOLE.fullmatch(label)
    return whole[1] if whole else label


def number_in(value: Any) -> float | None:
    """The finite number in a cell; None for anything else, also for `1_000`, which is one in Python alone."""
    if isinstance(value, bool) or (isinstance(value, str) and "_" in value):
        return None
    try:
        number = float(value)
    except (TypeError, ValueError, OverflowError):
        return None
    return number if math.isfinite(number) else None


def read_number(row: Row, column: str, settings: TaskSettings) -> float:
    """The number in a column. Raises `BadRow` if it is none, or not finite."""
    value, where = row.value(column), f"{row.where}, column {column!r}"
    number = number_in(value)
    if number is None:
        shown = textwrap.shorten(repr(value), 60, placeholder="...")
        if isinstance(value, str) and _DECIMAL_COMMA.fullmatch(value.strip()):
            point = value.strip().replace(",", ".")
            raise BadRow(
                f"{where}: {shown} is not a number; its comma may be decimal or separate thousands: write "
                f"numbers with a decimal point and no commas, such as {point}"
            )
        raise BadRow(f"{where}: {shown} is not a number; task.type: {settings.type} needs one, such as 3.5")
    return number


def scalar_text(value: Any, where: str) -> str:
    """A value of JSON or Parquet as a text file has it: `3`, not `3.0`; `true`.

    Raises `BadRow` for a list or an object.
    """
    if isinstance(value, str):
        return value
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    if isinstance(value, int | float):
        return str(value)
    kinds = {list: "a list", dict: "an object", type(None): "nothing"}
    kind = kinds.get(type(value), type(value).__name__)
    raise BadRow(f"{where}: holds {kind}; expected a text or a number")
