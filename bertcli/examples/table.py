"""The rows of a table, whatever its format, and how a config's columns are found in them."""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bertcli.config.finetune import Column
from bertcli.errors import UserError
from bertcli.examples.bad_rows import BadRow


@dataclass(frozen=True, slots=True)
class Row:
    """One row.

    Attributes:
        where: `spam.tsv, line 17`, the line where it begins.
        number: that line's number from 1; of a Parquet file the row's.
        values: column -> what stands there; `str`, and in JSON and Parquet any type.
    """

    where: str
    number: int
    values: Mapping[str, Any]

    def value(self, column: str) -> Any:
        """Raises `BadRow` where the row has no such column, as a JSON object may."""
        try:
            return self.values[column]
        except KeyError:
            there = ", ".join(self.values) or "none"
            raise BadRow(f"{self.where}: no key {column!r}; those there: {there}") from None

    def text(self, column: str) -> str:
        """The value as text; "" where it is null. Raises `BadRow` for a list or an object."""
        value = self.value(column)
        return "" if value is None else scalar_text(value, f"{self.where}, column {column!r}")


@dataclass(frozen=True)
class Table:
    """A table whose rows are read once, one at a time.

    Attributes:
        names: of the columns, in order; each once.
        rows: a `BadRow` stands for one that could not be read.
        hint: what to look at where a column is missing.
    """

    path: Path
    names: tuple[str, ...]
    rows: Iterator[Row | BadRow]
    hint: str = ""

    def column(self, wanted: Column, key: str) -> str:
        """The name of the column that the config's `key` names or counts. Raises `UserError`: no such one."""
        there = f"those there: {', '.join(self.names)}{self.hint}"
        if isinstance(wanted, int):
            if wanted < len(self.names):
                return self.names[wanted]
            raise UserError(f"{self.path}: {key}: no column {wanted}, counted from 0; {there}")
        if wanted in self.names:
            return wanted
        near = difflib.get_close_matches(wanted, self.names, n=1)
        nearest = f"; did you mean {near[0]!r}?" if near else ""
        raise UserError(f"{self.path}: {key}: no column {wanted!r}{nearest}; {there}")

    def label(self, wanted: Column | None) -> str:
        """The name of the label's column. Raises `UserError`: not given, or no such one."""
        if wanted is None:
            raise UserError(
                f"{self.path}: task.label: name the column of the label; those there: {', '.join(self.names)}"
            )
        return self.column(wanted, "task.label")


def check_names(path: Path, names: Sequence[str]) -> tuple[str, ...]:
    """A header's names, stripped; a column without one goes by its number.

    Raises `UserError` for a header without names, or with one twice.
    """
    if not any(name.strip() for name in names):
        raise UserError(f"{path}: the header is empty; the names of the columns were expected")
    named = tuple(name.strip() or str(number) for number, name in enumerate(names))
    twice = sorted({name for name in named if named.count(name) > 1})
    if twice:
        raise UserError(
            f"{path}: the header names {', '.join(map(repr, twice))} more than once; give each column a name "
            "of its own"
        )
    return named


def scalar_text(value: Any, where: str) -> str:
    """A value of JSON or Parquet as a file of text would have it: `3`, not `3.0`; `true`.

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
    raise BadRow(f"{where}: holds {_kind(value)}; a text or a number was expected")


def _kind(value: Any) -> str:
    return {list: "a list", dict: "an object", type(None): "nothing"}.get(type(value), type(value).__name__)
