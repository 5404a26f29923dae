"""Attributions -> words with their scores, as a page shows them (`words.html.j2`)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from bertcli.inference.attributions import Attributions
from bertcli.report.formatting import short

_LONGEST = 40
"""Characters of a word."""


@dataclass(frozen=True)
class ScoredWord:
    """A word, and what it adds to the output of a model.

    Attributes:
        score: with its sign, and as many digits as make three of the largest score.
        level: of the shade: the share of the largest score, in ninths.
    """

    text: str
    score: str
    level: int
    is_for: bool


def scored_words(attributions: Attributions) -> Sequence[ScoredWord]:
    """The words of `attributions`, in order."""
    largest = max(map(abs, attributions.scores), default=0.0) or 1.0
    decimals = min(6, max(0, 2 - math.floor(math.log10(largest))))
    return [
        ScoredWord(
            short(word, _LONGEST),
            f"{score:+.{decimals}f}".replace("-", "−"),  # a sign as wide as the plus
            level=round(9 * abs(score) / largest),
            is_for=score >= 0,
        )
        for word, score in zip(attributions.words, attributions.scores, strict=True)
    ]
