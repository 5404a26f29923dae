"""Predictions -> JSON lines, a table (CSV, TSV), or readable lines; each row beside its answer."""

import csv
import errno
import json
import os
import re
import secrets
import stat
import sys
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, Protocol, TextIO, TypeVar

from bertcli.folders.lengths import LongRows
from bertcli.inference.predict import Predicted
from bertcli.system.errors import UserError
from bertcli.system.files import disk_errors, sync
from bertcli.system.terminal import say, working

_FORMULA = re.compile(r"[=+\-@\t\r].", re.DOTALL)
"""The start of a cell that a spreadsheet would run as a formula."""
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?", re.IGNORECASE)


SEPARATORS = {".csv": ",", ".tsv": "\t"}
"""The suffix of a table -> the separator of its fields."""


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
    """A row and its answer as a line of JSON."""
    return json.dumps(row_json(predicted), ensure_ascii=False) + "\n"


class AnswerTable:
    """A writer of a table with a header, a row a line; fields are quoted by RFC 4180 where they must be.

    Each probability has a column of its own (`probabilities.spam`), labels are joined by `between` (a comma
    if it is None), and other lists, such as entities, are JSON. A cell that a spreadsheet would run as a
    formula (it starts with `=`, `+`, `-`, `@` or a tab, and is not a number) gets a `'` in front, which makes
    it text.
    """

    def __init__(self, file: TextIO, separator: str, between: str | None = None):
        # csv quotes a carriage return only if it can end a line.
        self._rows = csv.writer(_Lines(file), delimiter=separator, lineterminator="\r\n")
        self._between = between or ","
        self._names: list[str] | None = None
        self._formulas = 0

    def write(self, where: str, row: Mapping[str, Any], own: Collection[str] = ()) -> None:
        """Write a row, such as that of `row_json`.

        `own`: the columns that are written as they are, because the rows go back into a training file.

        Raises `UserError`, with `where`, for a column that the first row does not have (possible in JSON).
        """
        cells = dict[str, str]()
        # From the end: the answer, which stands last, keeps its names.
        for name, cell in reversed(list(_cells(row, self._between))):
            while name in cells:
                name = f"given_{name}"
            cells[name] = cell
        cells = dict(reversed(cells.items()))
        if self._names is None:
            self._names = list(cells)
            self._write(self._names, self._names, own=own)
        if strange := [name for name in cells if name not in self._names]:
            raise UserError(
                f"{where}: has {', '.join(map(repr, strange))}, which the first row does not have; a table "
                "needs the same columns in every row: write JSON lines instead (.jsonl)"
            )
        self._write(self._names, [cells.get(name, "") for name in self._names], own=own)

    def tell(self) -> None:
        """Print on standard error how many cells were marked as text, if any."""
        if self._formulas:
            say(
                f"{self._formulas:,} cells begin like a formula (=, +, -, @, tab): they are written with a ' "
                "in front, so that no spreadsheet runs them; JSON lines (.jsonl, --json) are exact"
            )

    def _write(self, names: list[str], cells: list[str], own: Collection[str]) -> None:
        harmless = [
            f"'{cell}" if name not in own and _is_formula(cell) else cell
            for name, cell in zip(names, cells, strict=True)
        ]
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


def _cells(row: Mapping[str, Any], between: str) -> Iterator[tuple[str, str]]:
    for name, value in row.items():
        if name == "probabilities" and isinstance(value, Mapping | list):  # else it is a user's column
            numbered = value if isinstance(value, Mapping) else dict(enumerate(value))
            yield from ((f"{name}.{key}", str(probability)) for key, probability in numbered.items())
        elif isinstance(value, list) and all(isinstance(part, str) for part in value):
            yield name, between.join(value)
        elif isinstance(value, list | Mapping):
            yield name, json.dumps(value, ensure_ascii=False)
        else:
            yield name, "" if value is None else str(value)


def check_output(path: Path, suffixes: Sequence[str], input_: str | None = None) -> None:
    """Raise `UserError` if nothing can be written there, or the suffix is not in `suffixes`."""
    if path.suffix not in suffixes:
        raise UserError(f"{path}: the suffix selects the format; give one of {', '.join(suffixes)}")
    if path.is_dir():
        raise UserError(f"{path}: is a folder; name the file to write in it")
    if not path.parent.is_dir():
        raise UserError(f"{path}: there is no folder {path.parent}; create it first, or write elsewhere")
    if input_ is not None:
        check_not_read(path, input_)


def check_not_read(path: Path, input_: str) -> None:
    """Raise `UserError` if the file to write is the one that is read."""
    if path.exists() and Path(input_).exists() and path.samefile(input_):
        raise UserError(f"{path}: is the input file; write to another file")


@contextmanager
def opened(path: Path | None) -> Iterator[TextIO]:
    """The open file (UTF-8, written as `aside` does), or standard output for None.

    Raises `UserError` if the file cannot be written.
    """
    if path is None:
        yield sys.stdout
        return
    with writing(path), aside(path) as partial, open(partial, "w", encoding="utf-8", newline="") as file:
        yield file


@contextmanager
def aside(path: Path) -> Iterator[Path]:
    """The path to write to, so that `path` is always the complete old file or the complete new file.

    It is a new file in the same folder, with a unique name, which is renamed when the block succeeds and
    removed when it fails; a killed process leaves it (`.answers.tsv.5e1f09c2.partial`). Permissions are those
    of the old file. A link is followed. A pipe or a device is written directly.
    """
    old = path.stat().st_mode if path.exists() else None
    is_stream = path.is_symlink() and os.readlink(path).startswith(("/dev/", "/proc/"))
    if is_stream or (old is not None and not stat.S_ISREG(old)):
        yield path
        return
    if old is not None and not os.access(path, os.W_OK):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(path))
    target = Path(os.path.realpath(path))
    partial = target.with_name(f".{target.name[:40]}.{secrets.token_hex(4)}.partial")
    partial.touch(exist_ok=False)
    try:
        if old is not None:
            partial.chmod(stat.S_IMODE(old))
        yield partial
        sync(partial)
        partial.replace(target)
    except BaseException:
        partial.unlink(missing_ok=True)
        raise
    sync(target.parent)


def writing(path: Path) -> AbstractContextManager[None]:
    """A block in which the error of a full disk, or of missing permissions, becomes a `UserError`."""
    return disk_errors(f"{path}: could not be written", "and try again", "write elsewhere")


class HasDropped(Protocol):
    """A result that knows how many tokens were cut off."""

    @property
    def dropped(self) -> int:
        """Tokens that the model could not read."""
        ...


Result = TypeVar("Result", bound=HasDropped)


class CutRows(LongRows):
    """Counts long rows, results, and results whose rows were cut. While the command prints nothing else, it
    shows the number of results."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.results = self.cut = self._told = 0

    def watch(self, results: Iterable[Result]) -> Iterator[Result]:
        """The same results, counted."""
        with working(self._line):
            for result in results:
                self.results += 1
                self.cut += result.dropped > 0
                yield result

    def _line(self) -> str:
        """The number of rows in words; empty if no row is new, since the writer of the rows may be slow."""
        before, self._told = self._told, self.results
        return f"{self.results:,} rows answered" if self.results > before else ""

    def tell(self) -> None:
        """Print on standard error how many rows were cut, and how many were long, if any."""
        if self.cut:
            say(cut_line(self.cut, self.results))
        super().tell()


class SureAnswers:
    """The answers with at least a probability; the others become undecided, and are counted."""

    def __init__(self, minimum: float) -> None:
        """`minimum`: from 0 to 1; 0: every answer is sure enough."""
        self._minimum, self._undecided, self._answers = minimum, 0, 0

    def watch(self, answers: Iterable[Predicted]) -> Iterator[Predicted]:
        """The same answers. Raises `UserError` for answers without a probability, unless the minimum is 0."""
        for answer in answers:
            self._answers += 1
            decided = answer.prediction.decided(self._minimum) if self._minimum else answer.prediction
            self._undecided += decided is not answer.prediction
            yield replace(answer, prediction=decided)

    def tell(self) -> None:
        """Print on standard error how many answers are undecided, if there is a minimum."""
        if self._minimum:
            say(f"{self._undecided:,} of {self._answers:,} rows are undecided: below {self._minimum:g}")


def cut_line(cut: int, rows: int) -> str:
    """The message about rows that were cut."""
    return f"{cut:,} of {rows:,} rows were longer than the model reads, and were cut"
