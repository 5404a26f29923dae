"""Predictions -> JSON lines, a table with tabs, or lines to read; each row beside its answer."""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Protocol

from bertcli.errors import UserError
from bertcli.examples.examples import ChoiceExample
from bertcli.inference.predict import Predicted
from bertcli.terminal import say

_FORMULA = re.compile(r"[=+\-@\t\r].", re.DOTALL)
"""How a cell begins that a spreadsheet would run as a formula."""
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?", re.IGNORECASE)


class TextFile(Protocol):
    """Anything that text is written to."""

    def write(self, text: str, /) -> Any:
        """As that of an open file."""


def row_json(predicted: Predicted) -> dict[str, Any]:
    """The row's own columns, then the answer. A column with the name of one of the answer's fields, as the
    label of a labeled file, is called `given_...`; bytes that are no text are written in hexadecimal."""
    answer, columns = predicted.prediction.as_json(), predicted.example.columns
    own = {}
    for name, value in columns.items():
        taken = answer.keys() | (columns.keys() - {name})
        while name in taken:
            name = f"given_{name}"
        own[name] = value.hex() if isinstance(value, bytes) else value
    return own | answer


def json_line(predicted: Predicted) -> str:
    """A row and its answer as JSON, without the end of the line."""
    return json.dumps(row_json(predicted), ensure_ascii=False)


def lines_to(file: TextFile, line: Callable[[Predicted], str]) -> Callable[[Predicted], object]:
    """What writes each answer to `file` as `line` says it."""
    return lambda predicted: file.write(line(predicted) + "\n")


class AnswerTable:
    """Writes rows separated by tabs, with a header; fields with tabs, quotes or line ends are quoted.

    A probability has a column of its own (`probabilities.spam`), labels are joined by commas, and other
    lists, as entities, are JSON. A cell that a spreadsheet would run as a formula (`=`, `+`, `-`, `@` or a
    tab before other characters, and no number) has a `'` before it, which makes it a text there.
    """

    def __init__(self, file: TextFile):
        self._rows = csv.writer(file, delimiter="\t", lineterminator="\n")
        self._names: list[str] | None = None
        self._formulas = 0

    def write(self, predicted: Predicted) -> None:
        """Raises `UserError` for a column that the rows before have not, as JSON lines may have."""
        row = dict(_cells(row_json(predicted)))
        if self._names is None:
            self._names = list(row)
            self._write(self._names)
        if strange := [name for name in row if name not in self._names]:
            raise UserError(
                f"{predicted.example.where}: has {', '.join(map(repr, strange))}, which the first row has "
                f"not; a table needs the same columns in every row: write JSON lines instead (.jsonl)"
            )
        self._write([row.get(name, "") for name in self._names])

    def tell(self) -> None:
        """Say on standard error how many cells were marked as text, if any were."""
        if self._formulas:
            say(
                f"{self._formulas:,} cells begin as a formula does (=, +, -, @, tab): a ' stands before "
                "them, so that no spreadsheet runs them; JSON lines (.jsonl, --json) are exact",
            )

    def _write(self, cells: list[str]) -> None:
        harmless = [f"'{cell}" if _is_formula(cell) else cell for cell in cells]
        self._formulas += sum(map(str.__ne__, cells, harmless))
        self._rows.writerow(harmless)


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
    """One answer for people: the label with its probability and the text; entities one a line."""
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
