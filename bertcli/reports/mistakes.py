"""Wrong answers for a report: the texts, the right answer, the given one, and the words that explain it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import PurePath
from typing import Any

from bertcli.inference.attributions import attributions
from bertcli.inference.evaluate_task import right_answer
from bertcli.reports.labeled_data import DevAnswers
from bertcli.reports.passages import (
    LONGEST,
    Kind,
    Passage,
    Piece,
    ScoredWord,
    answer_passages,
    entity_passages,
    scored_words,
)
from bertcli.system.errors import UserError
from bertcli.system.terminal import number, percent, short
from bertcli.tasks.classification import THRESHOLD, Classified
from bertcli.tasks.compared_vectors import Ranked, Scored
from bertcli.tasks.examples import (
    ChoiceExample,
    Example,
    QuestionExample,
    SimilarExample,
    TaggedExample,
    TextExample,
)
from bertcli.tasks.multiple_choice import Chosen
from bertcli.tasks.question_answering import Answered
from bertcli.tasks.regression import Value
from bertcli.tasks.token_classification import Tagged

MOST = 50
_EXPLAINED, _WORDS = 20, 80
"""Number of explained mistakes, each some thirty forward and backward passes, and of words shown for each."""
_LONGEST_NAME = 80
"""Largest number of characters of an answer or a place."""
NO_ANSWER = "(no answer)"


@dataclass(frozen=True)
class Explanation:
    """The words of a row with their scores. `is_complete`: the scores add up to the output.

    `answer`: the answer that the scores explain, as `inference.decision` names it.
    """

    answer: str
    words: Sequence[ScoredWord]
    is_complete: bool


@dataclass(frozen=True)
class Mistake:
    """One wrong answer.

    Attributes:
        row: the index among the answered rows.
        where: the place in the file; the file is named without its folder.
        right, given: the answers; empty if the passages show them.
        score: the score of the given answer: a probability, or for numbers the distance.
        sureness: the sort key of the mistakes.
        explanation: what each word adds to the output for the answer; None: not asked for, or no word.
    """

    row: int
    where: str
    passages: Sequence[Passage]
    right: str
    given: str
    score: str
    sureness: float
    explanation: Explanation | None = None


def mistakes_of(answers: DevAnswers) -> list[Mistake]:
    """The mistakes with the highest sureness; for numbers and vectors, those with the largest errors."""
    vectors = partial(_of_vectors, examples=answers.examples)
    builders: dict[str, Callable[[int, Any, Any], Mistake]] = _BUILDERS | {"sentence-embedding": vectors}
    build = builders[answers.task.settings.type]
    found = [build(row, answers.examples[row], answers.predictions[row]) for row in answers.wrong]
    return sorted(found, key=lambda mistake: -mistake.sureness)[:MOST]


def explained(mistakes: Sequence[Mistake], answers: DevAnswers) -> list[Mistake]:
    """The same mistakes; the first few have an explanation."""
    first = [
        replace(mistake, explanation=_explanation(answers, mistake.row)) for mistake in mistakes[:_EXPLAINED]
    ]
    return [*first, *mistakes[_EXPLAINED:]]


def _explanation(answers: DevAnswers, row: int) -> Explanation | None:
    try:
        found = attributions(answers.loaded, answers.examples[row])
    except UserError:  # the row has no word
        return None
    return Explanation(short(found.answer, _LONGEST_NAME), scored_words(found)[:_WORDS], found.is_complete)


def _of_label(row: int, example: TextExample, answer: Classified) -> Mistake:
    if not answer.multi_label:
        given = answer.labels[0]
        sureness = answer.probabilities[given]
        return _mistake(row, example, right=str(example.label), given=given, sureness=sureness)
    right, probabilities = right_answer(example), answer.probabilities
    wrong = set(answer.labels) ^ set(right)
    return _mistake(
        row,
        example,
        right=", ".join(right) or "(none)",
        given=", ".join(answer.labels) or "(none)",
        sureness=max(abs(probabilities[label] - THRESHOLD) for label in wrong) + THRESHOLD,
    )


def _of_number(row: int, example: TextExample, answer: Value) -> Mistake:
    assert isinstance(example.label, float)
    off = answer.value - example.label
    right, given = number(example.label), number(answer.value)
    mistake = _mistake(row, example, right=right, given=given, sureness=abs(off))
    return replace(mistake, score=f"{'+' if off > 0 else '−'}{number(abs(off))}")


def _of_tags(row: int, example: TaggedExample, answer: Tagged) -> Mistake:
    passages, sureness = entity_passages(example, answer)
    return _mistake(row, example, passages, sureness=sureness)


def _of_answer(row: int, example: QuestionExample, answer: Answered) -> Mistake:
    return _mistake(
        row,
        example,
        answer_passages(example, answer),
        right=" / ".join(dict.fromkeys(right_answer(example))) or NO_ANSWER,
        given=answer.answer or NO_ANSWER,
        sureness=answer.score,
    )


def _of_choice(row: int, example: ChoiceExample, answer: Chosen) -> Mistake:
    passages = _passages(example.texts[: -len(example.choices)])
    for place, choice in enumerate(example.choices[:10]):
        kind: Kind = "right" if place == example.label else "given" if place == answer.choice else ""
        piece = Piece(short(choice, LONGEST // 2), kind, percent(answer.probabilities[place]))
        passages.append(Passage(f"choice {place}", [piece]))
    return _mistake(
        row,
        example,
        passages,
        right=f"choice {example.label}",
        given=f"choice {answer.choice}",
        sureness=answer.probabilities[answer.choice],
    )


def _of_vectors(
    row: int, example: SimilarExample, answer: Ranked | Scored, examples: Sequence[SimilarExample]
) -> Mistake:
    """A mistake of vectors: the positive and the nearest text of `examples`; or a pair and its score."""
    if isinstance(answer, Scored):
        off = abs(answer.place - answer.right_place)
        right, given = number(example.score), number(answer.similarity)
        mistake = _mistake(row, example, right=right, given=given, sureness=off)
        return replace(mistake, score=f"off by {percent(off)}")
    assert answer.nearest is not None  # without another text, no answer is wrong
    other, place = answer.nearest
    anchor, positive, nearest = (
        short(text, LONGEST // 3) for text in (*example.texts[:2], examples[other].texts[place])
    )
    passages = [
        Passage("anchor", [Piece(anchor)]),
        Passage("positive", [Piece(positive, "right", number(answer.similarity))]),
        Passage("nearest", [Piece(nearest, "given", number(answer.nearest_similarity))]),
    ]
    mistake = _mistake(row, example, passages, sureness=answer.rank)
    return replace(mistake, score=f"{number(answer.rank)} of {number(answer.candidates)}")


def _mistake(
    row: int,
    example: Example,
    passages: Sequence[Passage] = (),
    right: str = "",
    given: str = "",
    sureness: float = 0.0,
) -> Mistake:
    """The mistake in this row. `passages`: the marked texts; if empty, the plain texts of the example."""
    path, comma, rest = example.where.partition(", ")
    return Mistake(
        row,
        short(f"{PurePath(path).name}{comma}{rest}", _LONGEST_NAME),
        passages or _passages(example.texts),
        right=short(right, _LONGEST_NAME),
        given=short(given, _LONGEST_NAME),
        score=percent(sureness) if sureness else "",
        sureness=sureness,
    )


def _passages(texts: Sequence[str]) -> list[Passage]:
    """A passage for each text; two texts are named A and B."""
    names = ["A", "B"] if len(texts) > 1 else [""]
    return [
        Passage(name, [Piece(short(text, LONGEST // len(texts)))])
        for name, text in zip(names, texts, strict=True)
    ]


_BUILDERS: dict[str, Callable[[int, Any, Any], Mistake]] = {
    "classification": _of_label,
    "regression": _of_number,
    "token-classification": _of_tags,
    "question-answering": _of_answer,
    "multiple-choice": _of_choice,
}
