"""What a labeled file holds: one class per kind of input. Every example knows its place in the file."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


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
        """All texts that the model reads. In a labeled file none may be empty; examples with equal ones are
        duplicates."""


@dataclass(frozen=True, slots=True)
class TextExample(Example):
    """classification, regression: a text or a pair, and its label (None: unlabeled).

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
    """token-classification: words with a tag each (None: unlabeled), and their places in `text`.

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
    """In characters of the context."""


@dataclass(frozen=True, slots=True)
class QuestionExample(Example):
    """question-answering: `answers` is empty if the context has none (SQuAD 2.0), None if unlabeled."""

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
    """multiple-choice: the text is paired with each choice; `label` is the number of the right one.

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
    """sentence-embedding: texts that shall be near each other, and texts that shall not.

    Attributes:
        given: anchor, positive, negatives; the anchor alone where it is plain text.
        score: how similar anchor and positive are; None: they fit, or nothing is known.
    """

    given: tuple[str, ...]
    score: float | None

    @property
    def texts(self) -> tuple[str, ...]:
        """All of them."""
        return self.given
