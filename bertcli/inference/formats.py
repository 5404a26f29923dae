"""Predictions -> JSON lines, a table (CSV, TSV), or readable lines; each row beside its answer."""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any, TextIO

from bertcli.errors import UserError
from bertcli.examples.examples import ChoiceExample
from bertcli.inference.predict import Predicted
from bertcli.terminal import say

_FORMULA = re.compile(r"[=+\-@\t\r].", re.DOTALL)
"""The start of a cell that a spreadsheet would run as a formula."""
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?", re.IGNORECASE)


SEPARATORS = {".csv": ",", ".tsv": "\t"}
"""The suffix of a table -> what separates its fields."""


def row_json(predicted: Predicted) -> dict[str, Any]:
    """The row's own columns, then the answer (`beside`)."""
    return beside(predicted.example.columns, predicted.prediction.as_json())


def beside(columns: Mapping[str, Any], answer: Mapping[str, Any]) -> dict[str, Any]:
    """The columns, then the answer. A column with the same name as a field of the answer, such as `label`, is
    renamed to `given_...`; binary values are written in hexadecimal."""
    own = {}
    for name, value in columns.items():
        taken = answer.keys() | (columns.keys() - {name})
        while name in taken:
            name = f"given_{name}"
        own[name] = value.hex() if isinstance(value, bytes) else value
    return own | dict(answer)


def json_line(predicted: Predicted) -> str:
    """A row and its answer as JSON, without a line end."""
    return json.dumps(row_json(predicted), ensure_ascii=False)


def lines_to(file: TextIO, line: Callable[[Predicted], str]) -> Callable[[Predicted], object]:
    """A function that writes an answer to `file`, formatted by `line`."""
    return lambda predicted: file.write(line(predicted) + "\n")


class AnswerTable:
    """Writes a table with a header, a row a line; fields are quoted as RFC 4180 says, where they must be.

    Each probability has a column of its own (`probabilities.spam`), labels are joined by commas, and other
    lists, such as entities, are JSON. A cell that a spreadsheet would run as a formula (it starts with `=`,
    `+`, `-`, `@` or a tab, and is not a number) gets a `'` in front, which makes it text.
    """

    def __init__(self, file: TextIO, separator: str):
        # csv quotes a carriage return only if it can end a line.
        self._rows = csv.writer(_Lines(file), delimiter=separator, lineterminator="\r\n")
        self._names: list[str] | None = None
        self._formulas = 0

    def write(self, where: str, row: Mapping[str, Any]) -> None:
        """Write a row, such as that of `row_json`.

        Raises `UserError`, with `where`, for a column that the first row does not have (possible in JSON).
        """
        cells = dict(_cells(row))
        if self._names is None:
            self._names = list(cells)
            self._write(self._names)
        if strange := [name for name in cells if name not in self._names]:
            raise UserError(
                f"{where}: has {', '.join(map(repr, strange))}, which the first row does not have; a table "
                "needs the same columns in every row: write JSON lines instead (.jsonl)"
            )
        self._write([cells.get(name, "") for name in self._names])

    def tell(self) -> None:
        """Print on standard error how many cells were marked as text, if any."""
        if self._formulas:
            say(
                f"{self._formulas:,} cells begin like a formula (=, +, -, @, tab): they are written with a ' "
                "in front, so that no spreadsheet runs them; JSON lines (.jsonl, --json) are exact"
            )

    def _write(self, cells: list[str]) -> None:
        harmless = [f"'{cell}" if _is_formula(cell) else cell for cell in cells]
        self._formulas += sum(map(str.__ne__, cells, harmless))
        self._rows.writerow(harmless)


class _Lines:
    """A file whose lines end with a newline alone, whatever the writer ends them with."""

    def __init__(self, file: TextIO):
        self._file = file

    def write(self, line: str) -> int:
        return self._file.write(line.removesuffix("\r\n") + "\n")


def _is_formula(cell: str) -> bool:
    return _FORMULA.match(cell) is not None and _NUMBER.fullmatch(cell) is None


def _cells(row: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    for name, value in row.items():
        if name == "probabilities":
            numbered = value if isinstance(value, Mapping) else dict(enumerate(value))
            yield from ((f"{name}.{key}", str(probability)) for key, probability in numbered.items())
        elif isinstance(value, list) and all(isinstance(part, str) for part in value):
            yield name, ",".join(value)
        elif isinstance(value, list | Mapping):
            yield name, json.dumps(value, ensure_ascii=False)
        else:
            yield name, "" if value is None else str(value)


def readable(predicted: Predicted) -> str:
    """One answer to read: the label with its probability and the text; one entity a line."""
    example, answer = predicted.example, predicted.prediction.as_json()
    text = "  |  ".join(example.texts)
    if "entities" in answer:
        found = (f"\n  {e['score']:7.2%}  {e['type']:<11} {e['text']}" for e in answer["entities"])
        return text + ("".join(found) or "\n  no entities")
    if "answer" in answer:
        return f"{answer['score']:7.2%}  {answer['answer'] or 'no answer in the text'}"
    if isinstance(example, ChoiceExample):
        shares = zip(answer["probabilities"], example.choices, strict=True)
        return "\n".join(f"{p:7.2%}  {choice}" for p, choice in sorted(shares, key=lambda each: -each[0]))
    if "value" in answer:
        return f"{answer['value']:10.4f}  {text}"
    if isinstance(answer["label"], list):
        chosen = ", ".join(f"{name} {answer['probabilities'][name]:.2%}" for name in answer["label"])
        return f"{chosen or 'no label'}  {text}"
    return f"{answer['probabilities'][answer['label']]:7.2%}  {answer['label']}  {text}"
