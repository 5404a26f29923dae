"""What is known of a term's loss before a model has learned anything."""

from __future__ import annotations

import math
from dataclasses import dataclass


@dataclass(frozen=True)
class Reference:
    """Reference lines of one term; losses in nats.

    Attributes:
        term: its name in the scores.
        first_loss: what a fresh model begins with; None: the model starts from trained weights.
        chance_loss: of a model that reads no context.
        line: what `chance_loss` means, for the person who watches the run.
        chance_accuracy: of the best constant answer; None: no constant answer is often right.
        predicts_words: the loss is one of words: it has a perplexity, and at `chance_loss` nothing but
            the frequencies of words was learned.
    """

    term: str
    first_loss: float | None
    chance_loss: float
    line: str
    chance_accuracy: float | None = None
    predicts_words: bool = False


def perplexity(loss: float) -> float:
    """exp of a loss in nats a word; the loss is cut off at 700, beyond which a float has no such number."""
    return math.exp(min(loss, 700))
