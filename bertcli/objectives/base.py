"""The interface between a task and the training loop."""

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from torch import Tensor, nn


@dataclass(frozen=True)
class Term:
    """One term of the loss over one micro-batch: sums, to be divided by the count of the full batch.

    Attributes:
        loss: float32 scalar, the sum of the losses; differentiable.
        correct: int64 scalar, the number of right predictions; None if the term does not count them.
        weight: the factor of the term in the loss of the step.
        unit: the factor of the loss in reports, for example to give a squared error on the labels' own scale.
        shares: further figures of an evaluation: name -> two int64 scalars, a part and its whole.
    """

    loss: Tensor
    correct: Tensor | None = None
    weight: float = 1.0
    unit: float = 1.0
    shares: Mapping[str, tuple[Tensor, Tensor]] = field(default_factory=dict)


class Task(Protocol):
    """A task. The loss of a step is the sum over its terms of weight * (sum of losses) / (count)."""

    def counts(self, batch: Any) -> Mapping[str, float]:
        """Term name -> the number of losses in its sum, known before the forward pass; may be 0.

        The name of a task's only term may be "".
        """
        ...

    def terms(self, model: nn.Module, batch: Any) -> Mapping[str, Term]:
        """Run the forward pass of one micro-batch -> its terms by name."""
        ...


class JointTask(Task, ABC):
    """A task with one loss over all rows of a step that is not a sum over rows; its term has the name "".

    It is a `Task` if a step has one micro-batch; `training.loop` computes steps of several micro-batches.
    """

    @abstractmethod
    def outputs(self, model: nn.Module, batch: Any) -> Tensor:
        """Run the forward pass of one micro-batch -> float32 [rows, ...]."""

    @abstractmethod
    def joint_term(self, outputs: Tensor, batches: Sequence[Any]) -> Term:
        """The loss of the step, times its count; `outputs` holds those of its micro-batches in order."""


@dataclass(frozen=True)
class Reference:
    """The reference values of one term; losses are in nats.

    Attributes:
        term: the name of the term in the scores.
        first_loss: the expected loss of a fresh model; None if the model starts from trained weights.
        chance_loss: the loss of a model that does not use the context.
        line: an explanation of `chance_loss` for the user.
        chance_accuracy: the accuracy of the best constant answer; None if no such answer is often right.
        predicts_words: true if the term predicts words: its loss has a perplexity, and at `chance_loss` the
            model has learned only word frequencies.
        rarer: the figure of an evaluation that tells the share of the rarer one of two answers, from which
            follows what chance gives there; empty: chance gives the same everywhere.
    """

    term: str
    first_loss: float | None
    chance_loss: float
    line: str
    chance_accuracy: float | None = None
    predicts_words: bool = False
    rarer: str = ""

    def by_chance(self, figures: Mapping[str, Any]) -> tuple[float, float | None]:
        """Loss and accuracy of an answer that does not use the context, in an evaluation with these
        figures."""
        share = figures.get(self.rarer)
        if share is None:
            return self.chance_loss, self.chance_accuracy
        return sum(-part * math.log(part) for part in (share, 1 - share) if part > 0), 1 - share


def words_reference(unigram_entropy: float, first_loss: float | None) -> Reference:
    """The reference of the term of masked words.

    Args:
        unigram_entropy: the entropy of the corpus in nats: the loss of a model that knows only word
            frequencies.
        first_loss: the expected loss of a fresh model, or None.
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
    """The exponential of a loss in nats per word, clipped at 700, because a float overflows beyond that."""
    return math.exp(min(loss, 700))
