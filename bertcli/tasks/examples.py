"""What a labeled file holds: one class per kind of input."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, TypeVar

SHOWN, SHOWN_CONTEXT = 60, 160
"""Most characters of a text, and of a question's context, in a command to try."""


@dataclass(frozen=True, slots=True)
class Example:
    """One row of a labeled file, or one text to predict.

    Attributes:
        where: `spam.tsv, line 17`, for messages and wrong cases.
        columns: the row as it was read, to be written beside its prediction.
        given: the texts in their columns, without choices.
    """

    where: str
    columns: Mapping[str, Any]
    given: tuple[str, ...]

    @property
    def texts(self) -> tuple[str, ...]:
        """All texts that the model reads. None may be empty in a labeled file. Examples with equal texts are
        duplicates."""
        return self.given

    @property
    def content(self) -> tuple[str, ...]:
        """The texts of which train and dev must not have copies."""
        return self.texts

    @property
    def query(self) -> tuple[str, ...]:
        """What the rows have in common that are better on one side of train and dev, to be ranked."""
        return self.content

    @property
    def names(self) -> Sequence[str]:
        """Every label and tag, which the model can learn only from training examples."""
        return ()

    @property
    def counted(self) -> Sequence[str]:
        """What a report on the data counts: the labels, and where they have no names, kinds of answers."""
        return self.names

    @property
    def number(self) -> float | None:
        """The label that is a number."""
        return None

    @property
    def answer(self) -> Hashable:
        """The label, if equal texts must have equal labels; None for numbers and answers in a text."""
        return None

    @property
    def excerpts(self) -> Sequence[tuple[str, int]]:
        """Each text, from where its answer is, and the most characters of it in a command to try."""
        return [(text, SHOWN) for text in self.texts]

    def spelled(self, own: Mapping[str, str]) -> Example:
        """The example with its labels spelled as the model's; `own`: the usual spelling -> the model's."""
        return self


AnyExample = TypeVar("AnyExample", bound=Example)


@dataclass(frozen=True, slots=True)
class TextExample(Example):
    """A text or a pair and its label (None: unlabeled), for classification and regression.

    `label` is a str; a tuple of str with `multi_label`; a float for regression.
    """

    label: str | tuple[str, ...] | float | None

    @property
    def query(self) -> tuple[str, ...]:
        """The first text of a pair whose label is a number or several labels."""
        return self.texts if isinstance(self.label, str) else self.texts[:1]

    @property
    def names(self) -> Sequence[str]:
        """The labels, if they have names."""
        if isinstance(self.label, tuple):
            return self.label
        return (self.label,) if isinstance(self.label, str) else ()

    @property
    def number(self) -> float | None:
        """The label of regression."""
        return self.label if isinstance(self.label, float) else None

    @property
    def answer(self) -> Hashable:
        """The labels in any order, or the one label."""
        return tuple(sorted(self.names)) if isinstance(self.label, tuple) else next(iter(self.names), None)

    def spelled(self, own: Mapping[str, str]) -> TextExample:
        label = tuple(own.get(name, name) for name in self.names)
        return replace(self, label=label[0] if isinstance(self.label, str) else label) if self.names else self


class Mention(NamedTuple):
    """An entity at characters `start` to `end` (exclusive) of a text."""

    start: int
    end: int
    type: str


@dataclass(frozen=True, slots=True)
class MarkedText(Example):
    """A text and the entities that people marked in it (None: unlabeled), before it has words.

    `tasks.places` divides it into words, which makes it a `TaggedExample`.
    """

    mentions: tuple[Mention, ...] | None

    @property
    def names(self) -> Sequence[str]:
        """The tags that entities of these types can have."""
        return [f"{letter}-{each.type}" for each in self.mentions or () for letter in "BI"]

    @property
    def counted(self) -> Sequence[str]:
        """The type of each entity."""
        return [each.type for each in self.mentions or ()]

    @property
    def answer(self) -> Hashable:
        """The entities."""
        return self.mentions


@dataclass(frozen=True, slots=True)
class TaggedExample(Example):
    """Words with a tag each (None: unlabeled) and their places in the text, for token-classification.

    The text is running text; for CoNLL files it is the words joined by blanks.

    Attributes:
        words: the words, in order.
        spans: (start, end) of each word in the text, in characters.
        tags: one a word, in BIO (IOB2), whatever the scheme of the file.
    """

    words: tuple[str, ...]
    spans: tuple[tuple[int, int], ...]
    tags: tuple[str, ...] | None

    @property
    def names(self) -> Sequence[str]:
        """The tags."""
        return self.tags or ()

    @property
    def counted(self) -> Sequence[str]:
        """The type of each entity."""
        return [tag[2:] or "entity" for tag in self.names if tag[0] == "B"]

    @property
    def answer(self) -> Hashable:
        """The tags."""
        return self.tags


@dataclass(frozen=True, slots=True)
class Answer:
    """A span of the context that answers a question."""

    text: str
    start: int
    """The position in the context, in characters."""


@dataclass(frozen=True, slots=True)
class QuestionExample(Example):
    """A question, its context and its answers, for question-answering. `answers` is empty if the context has
    none (SQuAD 2.0), None if unlabeled."""

    id: str
    answers: tuple[Answer, ...] | None

    @property
    def content(self) -> tuple[str, ...]:
        """The context."""
        return self.texts[1:]

    @property
    def counted(self) -> Sequence[str]:
        """Whether the question has an answer."""
        return ["answered" if self.answers else "without an answer"]

    @property
    def excerpts(self) -> Sequence[tuple[str, int]]:
        """The question, and the context around its first answer."""
        question, context = self.texts
        start = self.answers[0].start if self.answers else 0
        around = context[max(0, start - SHOWN_CONTEXT // 2) :]
        if len(around) < len(context):
            around = around.partition(" ")[2] or around
        return [(question, SHOWN), (around, SHOWN_CONTEXT)]


@dataclass(frozen=True, slots=True)
class ChoiceExample(Example):
    """Texts that are paired with each choice, for multiple-choice; `label` is the number of the right one.

    The first given text is the first segment; the second is the other text (if any), a blank, and the choice.
    """

    choices: tuple[str, ...]
    label: int | None

    @property
    def texts(self) -> tuple[str, ...]:
        """The given texts and every choice."""
        return self.given + self.choices

    @property
    def counted(self) -> Sequence[str]:
        """The number of the right choice."""
        return [f"choice {self.label}"]


@dataclass(frozen=True, slots=True)
class SimilarExample(Example):
    """Texts that shall be near each other, and texts that shall not, for sentence-embedding.

    The texts are anchor, positive, negatives; the anchor alone for plain text. `score` is the similarity of
    anchor and positive; None: they fit, or it is not known.
    """

    score: float | None

    @property
    def number(self) -> float | None:
        """The score."""
        return self.score
