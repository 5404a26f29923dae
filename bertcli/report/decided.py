"""Mistakes -> the words that decided them, by integrated gradients (`inference.attributions`)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from bertcli.errors import UserError
from bertcli.inference.attributions import attributions
from bertcli.report.answered import AnsweredRows
from bertcli.report.mistakes import Mistake
from bertcli.report.short import short

MOST = 20
"""Mistakes: each takes some thirty passes forward and back."""
_WORDS = 80
_LONGEST = 40


@dataclass(frozen=True)
class DecidingWord:
    """A word, and what it adds to the logit of the answer; `level`: in ninths of the largest share."""

    text: str
    score: float
    level: int


@dataclass(frozen=True)
class Decided:
    """The words of a row; `is_complete`: their scores add up to the answer's logit, as they must."""

    answer: str
    words: Sequence[DecidingWord]
    is_complete: bool


def decided_mistakes(answered: AnsweredRows, mistakes: Sequence[Mistake]) -> Mapping[int, Decided]:
    """Row -> its words, for the first `MOST` mistakes; a row without a word to explain has none."""
    found = {}
    for mistake in mistakes[:MOST]:
        try:
            found[mistake.row] = _decided(answered, mistake.row)
        except UserError:
            continue
    return found


def _decided(answered: AnsweredRows, row: int) -> Decided:
    by_word = attributions(answered.loaded, answered.examples[row])
    largest = max(map(abs, by_word.scores), default=0.0) or 1.0
    words = [
        DecidingWord(short(word, _LONGEST), score, level=round(9 * abs(score) / largest))
        for word, score in zip(by_word.words[:_WORDS], by_word.scores[:_WORDS], strict=True)
    ]
    return Decided(short(by_word.answer, _LONGEST), words, by_word.is_complete)
