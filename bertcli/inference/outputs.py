"""Where results go: a checked path, an open file, and a word on the rows that did not fit into the model."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Protocol, TextIO, TypeVar

from bertcli.errors import UserError
from bertcli.files import disk_errors


def check_output(path: Path, suffixes: Sequence[str], input_: str | None = None) -> None:
    """Raises `UserError` where nothing can be written to, or the suffix is none of `suffixes`."""
    if path.suffix not in suffixes:
        raise UserError(f"{path}: the suffix says what is written; give one of {', '.join(suffixes)}")
    if path.is_dir():
        raise UserError(f"{path}: is a folder; name the file to write in it")
    if not path.parent.is_dir():
        raise UserError(f"{path}: there is no folder {path.parent}; make it first, or write elsewhere")
    if input_ is not None and path.exists() and Path(input_).exists() and path.samefile(input_):
        raise UserError(f"{path}: is what is read; write to another file")


@contextmanager
def opened(path: Path | None) -> Iterator[TextIO]:
    """The file, UTF-8; standard output for None. Raises `UserError` where the file cannot be written."""
    if path is None:
        yield sys.stdout
        return
    with writing(path), open(path, "w", encoding="utf-8", newline="") as file:
        yield file


def writing(path: Path) -> AbstractContextManager[None]:
    """Turns a full disk, or a place that may not be written, into a `UserError`."""
    return disk_errors(f"{path}: could not be written", "and try again", "write elsewhere")


class HasDropped(Protocol):
    @property
    def dropped(self) -> int:
        """Tokens that the model could not read."""
        ...


Result = TypeVar("Result", bound=HasDropped)


class CutRows:
    """Counts results as they pass, and those of rows that were cut."""

    def __init__(self) -> None:
        self.rows = self.cut = 0

    def watch(self, results: Iterable[Result]) -> Iterator[Result]:
        for result in results:
            self.rows += 1
            self.cut += result.dropped > 0
            yield result

    def tell(self) -> None:
        """Say on standard error how many were cut, if any were."""
        if self.cut:
            print(cut_line(self.cut, self.rows), file=sys.stderr)


def cut_line(cut: int, rows: int) -> str:
    return f"{cut:,} of {rows:,} rows were longer than the model reads, and were cut"
