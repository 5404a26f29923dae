"""Known values of a term's loss for a model that has learned nothing."""

from __future__ import annotations

import math
from dataclasses import dataclass


@dataclass(frozen=True)
class Reference:
    """Reference lines of one term; losses in nats.

    Attributes:
        term: its name in the scores.
        first_loss: expected of a fresh model; None: the model starts from trained weights.
        chance_loss: of a model that does not use the context.
        line: explains `chance_loss` to the user.
        chance_accuracy: of the best constant answer; None: no constant answer is often right.
        predicts_words: the term predicts words: its loss has a perplexity, and at `chance_loss` the model
            has learned only word frequencies.
    """

    term: str
    first_loss: float | None
    chance_loss: float
    line: str
    chance_accuracy: float | None = None
    predicts_words: bool = False


def words_reference(unigram_entropy: float, first_loss: float | None) -> Reference:
    """Of masked words.

    Args:
        unigram_entropy: of the corpus, in nats: the loss of a model that knows only word frequencies.
    """
    return Reference(
        term="mlm",
        first_loss=first_loss,
        chance_loss=unigram_entropy,
        line=f"unigram entropy of the corpus: {unigram_entropy:.3f} (an MLM that stays here has learned word "
        "frequencies and nothing else)",
        predicts_words=True,
    )


def perplexity(loss: float) -> float:
    """exp of a loss in nats a word; the loss is clipped at 700, because a float overflows beyond it."""
    return math.exp(min(loss, 700))
