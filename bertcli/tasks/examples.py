"""What a labeled file holds: one class per kind of input; and one message about all of its unusable rows."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from bertcli.system.errors import UserError
from bertcli.system.terminal import working


@dataclass(frozen=True, slots=True)
class Example(ABC):
    """One row of a labeled file, or one text to predict.

    Attributes:
        where: `spam.tsv, line 17`, for messages and wrong cases.
        columns: the row as it was read, to be written beside its prediction.
    """

    where: str
    columns: Mapping[str, Any]

    @property
    @abstractmethod
    def texts(self) -> tuple[str, ...]:
        """All texts that the model reads. None may be empty in a labeled file. Examples with equal texts are
        duplicates."""


@dataclass(frozen=True, slots=True)
class TextExample(Example):
    """A text or a pair and its label (None: unlabeled), for classification and regression.

    `label` is a str; a tuple of str with `multi_label`; a float for regression.
    """

    text_a: str
    text_b: str | None
    label: str | tuple[str, ...] | float | None

    @property
    def texts(self) -> tuple[str, ...]:
        """The text, or both of a pair."""
        return (self.text_a,) if self.text_b is None else (self.text_a, self.text_b)


@dataclass(frozen=True, slots=True)
class TaggedExample(Example):
    """Words with a tag each (None: unlabeled) and their places in `text`, for token-classification.

    Attributes:
        text: the running text; for CoNLL files the words joined by blanks.
        words: the words, in order.
        spans: (start, end) of each word in `text`, in characters.
        tags: one a word, in BIO (IOB2), whatever the scheme of the file.
    """

    text: str
    words: tuple[str, ...]
    spans: tuple[tuple[int, int], ...]
    tags: tuple[str, ...] | None

    @property
    def texts(self) -> tuple[str, ...]:
        """The running text."""
        return (self.text,)


@dataclass(frozen=True, slots=True)
class Answer:
    """A span of the context that answers a question."""

    text: str
    start: int
    """The position in the context, in characters."""


@dataclass(frozen=True, slots=True)
class QuestionExample(Example):
    """A question and its answers, for question-answering. `answers` is empty if the context has none (SQuAD
    2.0), None if unlabeled."""

    id: str
    question: str
    context: str
    answers: tuple[Answer, ...] | None

    @property
    def texts(self) -> tuple[str, ...]:
        """The question and the context."""
        return self.question, self.context


@dataclass(frozen=True, slots=True)
class ChoiceExample(Example):
    """A text that is paired with each choice, for multiple-choice; `label` is the number of the right one.

    `text_a` is the first segment; the second is `text_b` (if any), a blank, and the choice.
    """

    text_a: str
    text_b: str | None
    choices: tuple[str, ...]
    label: int | None

    @property
    def texts(self) -> tuple[str, ...]:
        """The text and every choice."""
        return (self.text_a, *([] if self.text_b is None else [self.text_b]), *self.choices)


@dataclass(frozen=True, slots=True)
class SimilarExample(Example):
    """Texts that shall be near each other, and texts that shall not, for sentence-embedding.

    Attributes:
        given: anchor, positive, negatives; the anchor alone for plain text.
        score: the similarity of anchor and positive; None: they fit, or it is not known.
    """

    given: tuple[str, ...]
    score: float | None

    @property
    def texts(self) -> tuple[str, ...]:
        """The given texts."""
        return self.given


NAMED = 5
"""Number of bad rows of a file that are named; the others are counted."""
UNUSABLE = ", which cannot be used"
"""The words after the number of bad rows, in the report on those that are left out."""


class BadRow(UserError):
    """A row that cannot be used; its message says where and why. Other rows of the file still can be."""


class SkippedRow(BadRow):
    """A row that the config leaves out by its label (`task.skip_labels`)."""


Raw = TypeVar("Raw")
Made = TypeVar("Made", bound=Example)


def each(rows: Iterable[Raw | BadRow], make: Callable[[Raw], Made]) -> Iterator[Made | BadRow]:
    """`make(row)` for each row, or the `BadRow` that the row is or that `make` raises."""
    for row in rows:
        try:
            made = row if isinstance(row, BadRow) else make(row)
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

    Bad rows are reported after the last row: with `skip_bad` to `report`, else as an error. A row with an
    empty text is bad in a labeled file. It is kept and reported in a file to predict, so that predictions and
    rows stay parallel.

    Args:
        path: the file, or a name for other input; for messages.

    Raises:
        UserError: rows that cannot be used; a file without rows, or without any text.
    """
    rows = skipped = 0
    bad, empty = _Noted(), _Noted()
    held_back: list[Example] = []  # a file without any text yields no example
    for example in _shown(found, path) if labeled else found:
        if isinstance(example, SkippedRow):
            skipped += 1
            continue
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
    if skipped:
        report(f"{path}: left out {_share(skipped, rows + skipped)} by their label (task.skip_labels)")
    if rows == 0:
        raise UserError(f"{path}: holds no rows")
    if empty.count == rows:
        raise UserError(f"{path}: the text of every row is empty; does task.text name the right column?")
    if bad.count and not (skip_bad and bad.count < rows):
        raise UserError(_refusal(path, bad, rows, labeled=labeled))
    if bad.count:
        report(f"{path}: left out {_share(bad.count, rows)}{UNUSABLE}:{bad.named()}")
    if empty.count and not labeled:
        report(f"{path}: the text is empty in {_share(empty.count, rows)}:{empty.named()}")


def _shown(rows: Iterable[Raw], path: Path | str) -> Iterator[Raw]:
    """The rows; a command that is silent says how many were read."""
    count = 0
    with working(lambda: f"{path}: {count:,} rows read"):
        for count, row in enumerate(rows, start=1):  # noqa: B007 - the line reads it
            yield row


def without_blank_lines(
    rows: Iterable[Raw | None], path: Path, report: Callable[[str], None]
) -> Iterator[Raw]:
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
        report(f"{path}: skipped {count} between the rows; they have no prediction")


class _Noted:
    """A count, and the first few messages."""

    def __init__(self) -> None:
        self.count = 0
        self.first: list[str] = []

    def add(self, what: str) -> None:
        self.count += 1
        if self.count <= NAMED:
            self.first.append(what)

    def named(self) -> str:
        """A line for each of the first messages, and one with the number of the others."""
        rest = self.count - len(self.first)
        return "".join(f"\n  {what}" for what in [*self.first, *([f"and {rest:,} more"] if rest else [])])


def _share(count: int, rows: int) -> str:
    return f"{count:,} of {rows:,} rows"


def _refusal(path: Path | str, bad: _Noted, rows: int, labeled: bool) -> str:
    mend = "mend the file"
    if labeled and bad.count < rows:
        mend += ", or leave such rows out with task.skip_bad: true"
    if bad.count == 1:
        return f"{bad.first[0]}; {mend}"
    return f"{path}: {_share(bad.count, rows)} cannot be used:{bad.named()}\n{mend}"
