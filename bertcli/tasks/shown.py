"""How a labeled task shows its answers: in words, beside the right ones, and which output explains them."""

import string
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal, Self

from torch import Tensor

from bertcli.system.errors import UserError
from bertcli.system.terminal import ELLIPSIS, short
from bertcli.tasks.calibration import Bin
from bertcli.tasks.row_words import ReadRow, read_row
from bertcli.tasks.verdict import Verdict
from bertcli.tokenizer.tokenizer import Tokenizer

LONGEST = 400
"""Largest number of characters of the texts of a mistake."""
Kind = Literal["", "right", "given", "both", "other"]
"""Kinds of marks. right: missed; given: wrong; both: found; other: found with another type or other ends."""
Mark = tuple[int, int, Kind, str]
"""A mark: start, end, kind and note."""


@dataclass(frozen=True)
class Piece:
    """A part of a text. `kind` says how it is marked; `note` is written after it."""

    text: str
    kind: Kind = ""
    note: str = ""


@dataclass(frozen=True)
class Passage:
    """A text in pieces, and its name, which tells it from the other texts of its row."""

    name: str
    pieces: Sequence[Piece]


def plain_passages(texts: Sequence[str]) -> list[Passage]:
    """A passage for each text; several texts are named A, B and so on."""
    names = string.ascii_uppercase if len(texts) > 1 else [""]
    return [
        Passage(name, [Piece(short(text, LONGEST // len(texts)))])
        for name, text in zip(names, texts, strict=False)
    ]


def marked_pieces(text: str, window: tuple[int, int], marks: Sequence[Mark]) -> list[Piece]:
    """The text in `window`, cut at the marks; marks must be in order and must not overlap."""
    at, end = window
    pieces = [Piece(ELLIPSIS if at > 0 else "")]
    for first, last, kind, note in marks:
        if first < end and last > at:
            pieces += [Piece(text[at:first]), Piece(text[max(at, first) : min(end, last)], kind, note)]
            at = min(end, last)
    pieces += [Piece(text[at:end]), Piece(ELLIPSIS if end < len(text) else "")]
    return [piece for piece in pieces if piece.text]


@dataclass(frozen=True)
class Mistake:
    """A wrong answer.

    Attributes:
        passages: the texts of the row.
        sureness: the sort key of the mistakes: the probability of the answer, or how far it is off.
        right, given: the answers; empty if the passages show them.
        score: the sureness in words; empty: as a percentage.
    """

    passages: Sequence[Passage]
    sureness: float = 0.0
    right: str = ""
    given: str = ""
    score: str = ""


@dataclass(frozen=True)
class MistakeWords:
    """The words about mistakes in a report.

    Attributes:
        are_wrong: what rows with a mistake are.
        worst: how the first mistakes are called.
        text, score: the headings of the columns.
        output: the kind of number that an explanation divides among the words.
        marks: kind -> what it means, for the kinds that passages have.
    """

    title: str = "Mistakes"
    are_wrong: str = "have a wrong answer"
    worst: str = "surest"
    text: str = "text"
    score: str = "score"
    output: str = "logit"
    marks: Mapping[Kind, str] = field(default_factory=dict)


@dataclass(frozen=True)
class ShownAnswer:
    """An answer to look at.

    Attributes:
        answer: the answer in words.
        probabilities: answers with their probabilities, the likeliest first.
        passages: the texts in which it is marked, with all of their characters.
    """

    answer: str
    probabilities: Sequence[tuple[str, float]] = ()
    passages: Sequence[Passage] = ()


class Prediction:
    """A task's answer for one example."""

    def decided(self, least: float) -> Self:
        """The answer; without its label if its probability is lower than `least`.

        Raises `UserError` if the task's answers have no single probability.
        """
        raise UserError(
            "--min-probability is for classification with one label a text; the answers of this model "
            "have no single probability: leave it out"
        )

    @property
    def uncertainty(self) -> float | None:
        """How near another answer is, from 0 (sure) to 1; None: the answer has no probability."""
        return None

    def label_scores(self, raw: bool) -> Mapping[str, float]:
        """The probability of each label, or its logit if `raw`; empty if a text's answer is no label and no
        number."""
        return {}

    def as_json(self) -> dict[str, Any]:
        """What `bertcli predict --json` prints for it, beside the text: its fields."""
        return dict(vars(self))

    def readable(self, example: Any) -> str:
        """The answer to read, with the texts of its example."""
        return f"{self.display(example).answer}  {beside_texts(example)}"

    def display(self, example: Any) -> ShownAnswer:
        """The answer to look at: here, its fields."""
        return ShownAnswer(", ".join(f"{name} {value}" for name, value in self.as_json().items()))


def likeliest_first(probabilities: Iterable[tuple[str, float]]) -> list[tuple[str, float]]:
    """The answers in the order of their probabilities."""
    return sorted(probabilities, key=lambda each: -each[1])


def nearness(probabilities: Sequence[float]) -> float:
    """1 minus the difference of the two highest probabilities (Scheffer, Decomain and Wrobel 2001)."""
    first, second, *_ = sorted([*probabilities, 0.0], reverse=True)
    return 1.0 - (first - second)


def beside_texts(example: Any) -> str:
    """The texts of an example on one line."""
    return "  |  ".join(example.texts)


@dataclass(frozen=True)
class Output:
    """One number of a model that stands for an answer.

    Attributes:
        answer: the answer, in words.
        logit: the model's output for B rows -> float [B], the logit of this answer: a label, a word's tag or
            a choice. A value stands for itself, and a span has the sum of its start and end logits.
        item, row: the numbers of the item that gives the answer, and of the row in that item.
    """

    answer: str
    logit: Callable[[Tensor], Tensor]
    item: int = 0
    row: int = 0


class ShownTask(ABC):
    """The part of a `LabeledTask` that judges, explains and shows answers.

    Attributes:
        pipeline_tag: the name of the task on model hubs.
        label_name: what a label is called.
        mistake_words: how a report words its mistakes.
        labels: those of `LabeledTask`.
    """

    pipeline_tag: ClassVar[str]
    label_name: ClassVar[str] = "label"
    mistake_words: MistakeWords = MistakeWords()
    labels: tuple[str, ...]

    @abstractmethod
    def verdict(self, examples: Sequence[Any], metrics: Mapping[str, Any]) -> Verdict:
        """The verdict on `score` of one or more labeled examples, beside an answer that reads no text."""

    def right_answer(self, example: Any) -> Any:
        """The right answer of a labeled example, as JSON."""
        return example.label

    def parts(self, prediction: Any) -> Sequence[Any]:
        """The answer in parts: numbers, or what is right or wrong by itself, as each word's tag is."""
        return [next(iter(prediction.as_json().values()))]

    def mistake(self, example: Any, prediction: Any, examples: Sequence[Any]) -> Mistake:
        """A wrong answer. `examples`: all that were answered together."""
        right, given = self.right_answer(example), prediction.as_json()
        return Mistake(plain_passages(example.texts), right=str(right), given=str(next(iter(given.values()))))

    def compared(self, example: Any, prediction: Any) -> tuple[Any, Any] | None:
        """The right and the given answer, if each is one label or one number; else None."""
        return None

    def reliability(self, examples: Sequence[Any], predictions: Sequence[Any]) -> Mapping[str, Sequence[Bin]]:
        """Name of a curve -> its bins: with the model's temperature, and without it. Empty if the answers
        have no probability."""
        return {}

    def answer_names(self, example: Any) -> Sequence[str]:
        """The answers to `example` that `output` can be asked for, in the order of their numbers.

        They are empty if the model has one answer alone.
        """
        return self.labels

    def output(
        self, example: Any, items: Sequence[Any], logits: Sequence[Tensor], target: int | None
    ) -> Output:
        """The number behind the model's answer to `example`, or behind the answer `target`.

        Args:
            items, logits: those of `example` (`LabeledTask.encode`, `LabeledTask.split_logits`).
            target: a number of `answer_names`; None: what the model predicts.

        Raises `UserError` if the model cannot give this answer.
        """
        best = int(logits[0].argmax()) if target is None else target
        return Output(self.answer_names(example)[best], lambda logits_BC: logits_BC[:, best])

    def read(self, example: Any, item: Any, number: int, tokenizer: Tokenizer) -> ReadRow:
        """The row `number` of an item that was made of `example`, and the words in it."""
        return read_row(item.rows[number], example.texts, tokenizer)
