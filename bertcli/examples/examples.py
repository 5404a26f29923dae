"""What a labeled file holds, one class per kind of input; every example knows where it stands."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Example(ABC):
    """One row of a labeled file, or one text to predict.

    Attributes:
        where: for messages and wrong cases: `spam.tsv, line 17`.
        columns: the row as it was read, for writing it out again beside its prediction.
    """

    where: str
    columns: Mapping[str, Any]

    @property
    @abstractmethod
    def texts(self) -> tuple[str, ...]:
        """All that the model reads of it. None may be empty in a labeled file; alike, it is a duplicate."""


@dataclass(frozen=True)
class TextExample(Example):
    """classification, regression: a text or a pair, and what it should give (None: unlabeled).

    `label` is a str; a tuple of str with `multi_label`; a float for regression.
    """

    text_a: str
    text_b: str | None
    label: str | tuple[str, ...] | float | None

    @property
    def texts(self) -> tuple[str, ...]:
        """The text, or both of a pair."""
        return (self.text_a,) if self.text_b is None else (self.text_a, self.text_b)


@dataclass(frozen=True)
class TaggedExample(Example):
    """token-classification: words with a tag each (None: unlabeled), and where they stand in `text`.

    Attributes:
        text: the running text; for CoNLL files the words joined by blanks.
        words: the words, in order.
        spans: (start, end) of each word in `text`, in characters.
        tags: one a word, in BIO (IOB2) whatever the file's scheme.
    """

    text: str
    words: tuple[str, ...]
    spans: tuple[tuple[int, int], ...]
    tags: tuple[str, ...] | None

    @property
    def texts(self) -> tuple[str, ...]:
        """The running text."""
        return (self.text,)


@dataclass(frozen=True)
class Answer:
    """A span of the context that answers a question."""

    text: str
    start: int
    """In characters of the context."""


@dataclass(frozen=True)
class QuestionExample(Example):
    """question-answering: `answers` is empty where there is none (SQuAD 2.0), None where unlabeled."""

    id: str
    question: str
    context: str
    answers: tuple[Answer, ...] | None

    @property
    def texts(self) -> tuple[str, ...]:
        """The question and the context."""
        return self.question, self.context


@dataclass(frozen=True)
class ChoiceExample(Example):
    """multiple-choice: each choice goes with the text; `label` is the number of the right one.

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
