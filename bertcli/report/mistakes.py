"""Rows with a wrong answer -> what was asked, what is right, what the model said, and for which words."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import PurePath
from typing import Any

from bertcli.errors import UserError
from bertcli.evaluation.task_file import right_answer
from bertcli.examples.examples import ChoiceExample, Example, TextExample
from bertcli.inference.attributions import attributions
from bertcli.report.dev_answers import DevAnswers
from bertcli.report.formatting import number, percent, short
from bertcli.report.passages import Kind, Passage, Piece, answer_passages, entity_passages
from bertcli.report.scored_words import ScoredWord, scored_words
from bertcli.tasks.classification import THRESHOLD, Classified
from bertcli.tasks.multiple_choice import Chosen
from bertcli.tasks.question_answering import Answered
from bertcli.tasks.regression import Value
from bertcli.tasks.token_classification import Tagged

MOST = 50
LONGEST = 400
"""Characters of a text."""
_EXPLAINED, _WORDS = 20, 80
"""Mistakes that are explained, which takes some thirty passes forward and back each, and words of each."""
_LONGEST_LABEL, _LONGEST_PLACE = 60, 80
NO_ANSWER = "(no answer)"


@dataclass(frozen=True)
class Explanation:
    """The words of a row with their scores; `is_complete`: these add up, as they must.

    `answer`: the one that the scores are for, as `inference.decision` names it.
    """

    answer: str
    words: Sequence[ScoredWord]
    is_complete: bool


@dataclass(frozen=True)
class Mistake:
    """One wrong answer.

    Attributes:
        row: its place among the answered rows.
        where: its place in the file.
        right, given: the answers; empty where the passages show them.
        score: of the given answer: a probability, or for numbers the distance.
        sureness: mistakes are sorted by it.
        explanation: what each word adds to the output for the answer; None: nobody asked, or no word does.
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
    """The mistakes of which the model was surest; of numbers, those farthest off."""
    build = _BUILDERS[answers.task.settings.type]
    found = [build(row, answers.examples[row], answers.predictions[row]) for row in answers.wrong]
    return sorted(found, key=lambda mistake: -mistake.sureness)[:MOST]


def explained(mistakes: Sequence[Mistake], answers: DevAnswers) -> list[Mistake]:
    """The same mistakes, the first few of them with an explanation."""
    first = [
        replace(mistake, explanation=_explanation(answers, mistake.row)) for mistake in mistakes[:_EXPLAINED]
    ]
    return [*first, *mistakes[_EXPLAINED:]]


def _explanation(answers: DevAnswers, row: int) -> Explanation | None:
    try:
        found = attributions(answers.loaded, answers.examples[row])
    except UserError:  # the row has no word
        return None
    return Explanation(short(found.answer, _LONGEST_LABEL), scored_words(found)[:_WORDS], found.is_complete)


def _of_label(row: int, example: TextExample, answer: Classified) -> Mistake:
    if answer.multi_label:
        right = right_answer(example)
        wrong = set(answer.labels) ^ set(right)
        sureness = max(abs(answer.probabilities[label] - THRESHOLD) for label in wrong) + THRESHOLD
        given = ", ".join(answer.labels) or "(none)"
        right = ", ".join(right) or "(none)"
    else:
        given, right = answer.labels[0], str(example.label)
        sureness = answer.probabilities[given]
    return _mistake(row, example, right=right, given=given, score=percent(sureness), sureness=sureness)


def _of_number(row: int, example: TextExample, answer: Value) -> Mistake:
    assert isinstance(example.label, float)
    off = answer.value - example.label
    return _mistake(
        row,
        example,
        right=number(example.label),
        given=number(answer.value),
        score=f"{'+' if off > 0 else '−'}{number(abs(off))}",
        sureness=abs(off),
    )


def _of_tags(row: int, example: Any, answer: Tagged) -> Mistake:
    passages, sureness = entity_passages(example, answer)
    shown = percent(sureness) if sureness else ""
    where = _place(example)
    return Mistake(row, where, passages, right="", given="", score=shown, sureness=sureness)


def _of_answer(row: int, example: Any, answer: Answered) -> Mistake:
    right = " / ".join(dict.fromkeys(right_answer(example))) or NO_ANSWER
    return Mistake(
        row,
        _place(example),
        answer_passages(example, answer),
        right=short(right, LONGEST // 2),
        given=short(answer.answer, LONGEST // 2) or NO_ANSWER,
        score=percent(answer.score),
        sureness=answer.score,
    )


def _of_choice(row: int, example: ChoiceExample, answer: Chosen) -> Mistake:
    passages = list(_texts(example))
    for place, choice in enumerate(example.choices[:10]):
        kind: Kind = "right" if place == example.label else "given" if place == answer.choice else ""
        piece = Piece(short(choice, LONGEST // 2), kind, percent(answer.probabilities[place]))
        passages.append(Passage(f"choice {place}", [piece]))
    sureness = answer.probabilities[answer.choice]
    return Mistake(
        row,
        _place(example),
        passages,
        right=f"choice {example.label}",
        given=f"choice {answer.choice}",
        score=percent(sureness),
        sureness=sureness,
    )


def _mistake(row: int, example: TextExample, right: str, given: str, score: str, sureness: float) -> Mistake:
    return Mistake(
        row,
        _place(example),
        _texts(example),
        right=short(right, _LONGEST_LABEL),
        given=short(given, _LONGEST_LABEL),
        score=score,
        sureness=sureness,
    )


def _texts(example: TextExample | ChoiceExample) -> list[Passage]:
    texts = [example.text_a] if example.text_b is None else [example.text_a, example.text_b]
    names = [""] if len(texts) == 1 else ["A", "B"]
    return [
        Passage(name, [Piece(short(text, LONGEST // len(texts)))])
        for name, text in zip(names, texts, strict=True)
    ]


def _place(example: Example) -> str:
    """Where it is, with the name of the file alone."""
    path, comma, rest = example.where.partition(", ")
    return short(f"{PurePath(path).name}{comma}{rest}", _LONGEST_PLACE)


_BUILDERS: dict[str, Callable[[int, Any, Any], Mistake]] = {
    "classification": _of_label,
    "regression": _of_number,
    "token-classification": _of_tags,
    "question-answering": _of_answer,
    "multiple-choice": _of_choice,
}
