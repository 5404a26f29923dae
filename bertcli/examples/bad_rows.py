"""Examples and the rows that none could be made of -> the examples, and one message about the others."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import TypeVar

from bertcli.errors import UserError
from bertcli.examples.examples import Example

NAMED = 5
"""So many of a file's bad rows are named; the others are counted."""


class BadRow(UserError):
    """A row that cannot be used; says where it stands and what is wrong. The others of its file can be."""


Raw = TypeVar("Raw")
Made = TypeVar("Made", bound=Example)


def each(rows: Iterable[Raw | BadRow], make: Callable[[Raw], Made]) -> Iterator[Made | BadRow]:
    """What `make` makes of each row; where it raises `BadRow`, or the row is one, that."""
    for row in rows:
        if isinstance(row, BadRow):
            yield row
            continue
        try:
            made: Made | BadRow = make(row)
        except BadRow as bad:
            made = bad
        yield made


def keep_usable(
    found: Iterable[Example | BadRow],
    path: Path | str,
    labeled: bool,
    skip_bad: bool,
    report: Callable[[str], None],
) -> Iterator[Example]:
    """The examples of one file, one at a time.

    What is wrong is said once the whole file was read: with `skip_bad` to `report`, else as an error. A row
    with an empty text is bad in a labeled file; one to predict goes through, and is reported: each row of
    the file has its answer, so that answers and rows stay parallel.

    Args:
        path: for messages; the file, or a name for what is no file.

    Raises:
        UserError: rows that cannot be used; a file without any row; one without any text.
    """
    rows = 0
    bad, empty = _Noted(), _Noted()
    held_back: list[Example] = []  # a file without any text is refused before any answer
    for example in found:
        rows += 1
        if not isinstance(example, BadRow) and not all(text.strip() for text in example.texts):
            empty.add(example.where)
            if labeled:
                example = BadRow(f"{example.where}: the text is empty")
        if isinstance(example, BadRow):
            bad.add(str(example))
            continue
        held_back.append(example)
        if empty.count < rows:
            yield from held_back
            held_back.clear()
    if rows == 0:
        raise UserError(f"{path}: holds no rows")
    if empty.count == rows:
        raise UserError(f"{path}: the text of every row is empty; does task.text name the right column?")
    if bad.count and not (skip_bad and bad.count < rows):
        raise UserError(_refusal(path, bad, rows, labeled=labeled))
    if bad.count:
        report(f"{path}: left out {_share(bad.count, rows)}, which cannot be used:{bad.named()}")
    if empty.count and not labeled:
        report(f"{path}: the text is empty in {_share(empty.count, rows)}:{empty.named()}")


class BlankLines:
    """Counts the blank lines between the rows of a file whose rows cannot be blank: those with several
    columns, or a JSON object each. Those at the end shift nothing and are not counted."""

    def __init__(self) -> None:
        self._between = self._pending = 0

    def blank(self) -> None:
        """Count a blank line."""
        self._pending += 1

    def row(self) -> None:
        """Count a row: the blank lines before it stand between rows."""
        self._between += self._pending
        self._pending = 0

    def tell(self, path: Path, report: Callable[[str], None]) -> None:
        """Call when the file is read, so that answers and lines are not taken for parallel."""
        if self._between:
            count = f"{self._between:,} blank line{'s' * (self._between > 1)}"
            report(f"{path}: passed over {count} between the rows: they hold no row and have no answer")


class _Noted:
    """A count, and the first few of what was counted."""

    def __init__(self) -> None:
        self.count = 0
        self.first: list[str] = []

    def add(self, what: str) -> None:
        self.count += 1
        if self.count <= NAMED:
            self.first.append(what)

    def named(self) -> str:
        """A line for each of the first, and one for the others."""
        rest = self.count - len(self.first)
        return "".join(f"\n  {what}" for what in [*self.first, *([f"and {rest:,} more"] if rest else [])])


def _share(count: int, rows: int) -> str:
    return f"{count:,} of {rows:,} rows"


def _refusal(path: Path | str, bad: _Noted, rows: int, labeled: bool) -> str:
    mend = "mend the file"
    if labeled and bad.count < rows:
        mend += ", or leave such rows out of a training run with task.skip_bad: true"
    if bad.count == 1:
        return f"{bad.first[0]}; {mend}"
    return f"{path}: {_share(bad.count, rows)} cannot be used:{bad.named()}\n{mend}"
