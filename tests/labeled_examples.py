"""Examples of every kind of labeled task in the words of `tests.folders.folders`, drawn by seed."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

from bertcli.tasks.examples import Answer, ChoiceExample, QuestionExample, TaggedExample, TextExample
from tests.folders.folders import LABELS

_WORDS = "the a cat dog sat on mat ran house dark was of night he she it".split()  # noqa: SIM905
_CONTEXT = 8
"""Words: every row of questions is as long as the others."""


def draw_examples(kind: str, number: int, seed: int = 0) -> list[Any]:
    """For a task of `tests.folders.folders.SETTINGS`; rows differ in length, but for questions."""
    source = random.Random(seed)
    return [_DRAW[kind](source) for _ in range(number)]


def _text(source: random.Random, words: int | None = None) -> str:
    return " ".join(source.choices(_WORDS, k=words or source.randint(1, 7)))


def _classification(source: random.Random) -> TextExample:
    label = source.choice(LABELS["classification"])
    return TextExample("here", {}, (_text(source), _text(source)), label)


def _multi_label(source: random.Random) -> TextExample:
    labels = tuple(label for label in LABELS["multi-label"] if source.random() < 0.4)
    return TextExample("here", {}, (_text(source),), labels)


def _regression(source: random.Random) -> TextExample:
    return TextExample("here", {}, (_text(source), _text(source)), source.uniform(-1, 1))


def _tokens(source: random.Random) -> TaggedExample:
    words = tuple(_text(source).split())
    tags = tuple(source.choices(LABELS["tokens"], k=len(words)))
    return TaggedExample("here", {}, (" ".join(words),), words, ((0, 0),) * len(words), tags)


def _questions(source: random.Random) -> QuestionExample:
    words = _text(source, _CONTEXT).split()
    first = source.randrange(_CONTEXT - 1)
    answer = Answer(" ".join(words[first : first + 2]), len(" ".join([*words[:first], ""])))
    return QuestionExample("here", {}, (_text(source, 3), " ".join(words)), "1", (answer,))


def _choices(source: random.Random) -> ChoiceExample:
    choices = tuple(_text(source) for _ in range(3))
    return ChoiceExample("here", {}, (_text(source),), choices, source.randrange(3))


_DRAW: dict[str, Callable[[random.Random], Any]] = {
    "classification": _classification,
    "multi-label": _multi_label,
    "regression": _regression,
    "tokens": _tokens,
    "questions": _questions,
    "choices": _choices,
}
