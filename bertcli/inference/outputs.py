"""Output of results: a checked path, an atomically written file, and a line about rows that were cut."""

from __future__ import annotations

import errno
import os
import secrets
import stat
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Protocol, TextIO, TypeVar

from bertcli.errors import UserError
from bertcli.files import disk_errors, sync
from bertcli.terminal import say, working


def check_output(path: Path, suffixes: Sequence[str], input_: str | None = None) -> None:
    """Raises `UserError` if nothing can be written there, or the suffix is not in `suffixes`."""
    if path.suffix not in suffixes:
        raise UserError(f"{path}: the suffix selects the format; give one of {', '.join(suffixes)}")
    if path.is_dir():
        raise UserError(f"{path}: is a folder; name the file to write in it")
    if not path.parent.is_dir():
        raise UserError(f"{path}: there is no folder {path.parent}; create it first, or write elsewhere")
    if input_ is not None and path.exists() and Path(input_).exists() and path.samefile(input_):
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
    """Turns the error of a full disk, or of missing permissions, into a `UserError`."""
    return disk_errors(f"{path}: could not be written", "and try again", "write elsewhere")


class HasDropped(Protocol):
    """A result that knows how many tokens were cut off."""

    @property
    def dropped(self) -> int:
        """Tokens that the model could not read."""
        ...


Result = TypeVar("Result", bound=HasDropped)


class CutRows:
    """Counts results, and those whose rows were cut; a command that is silent says how many there are."""

    def __init__(self) -> None:
        self.rows = self.cut = self._told = 0

    def watch(self, results: Iterable[Result]) -> Iterator[Result]:
        """The same results, counted."""
        with working(self._line):
            for result in results:
                self.rows += 1
                self.cut += result.dropped > 0
                yield result

    def _line(self) -> str:
        """Empty if there is nothing new: who writes the rows may be slow."""
        before, self._told = self._told, self.rows
        return f"{self.rows:,} rows answered" if self.rows > before else ""

    def tell(self) -> None:
        """Print on standard error how many rows were cut, if any."""
        if self.cut:
            say(cut_line(self.cut, self.rows))


def cut_line(cut: int, rows: int) -> str:
    """The message about rows that were cut."""
    return f"{cut:,} of {rows:,} rows were longer than the model reads, and were cut"
