"""The interface between a task and the training loop."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, Self

import torch
from torch import Tensor, nn


class TaskBatch(Protocol):
    """What a task reads in one forward pass."""

    @property
    def num_tokens(self) -> int:
        """Number of real tokens, for the reported speed."""
        ...

    def to(self, device: torch.device) -> Self:
        """The batch on a device."""
        ...


@dataclass(frozen=True)
class Term:
    """One term of the loss over one micro-batch: sums, which are divided by the count of the full batch.

    Attributes:
        loss: float32 scalar, the sum of the losses; differentiable.
        correct: int64 scalar, the number of right predictions; None if the term does not count them.
        weight: its factor in the loss of the step.
        unit: the loss is reported times this, for example as squared error of the labels' own scale.
        shares: name -> two int64 scalars, a part and its whole: further figures of an evaluation.
    """

    loss: Tensor
    correct: Tensor | None
    weight: float = 1.0
    unit: float = 1.0
    shares: Mapping[str, tuple[Tensor, Tensor]] = field(default_factory=dict)


class Task(Protocol):
    """What a model learns. The loss of a step is the sum over terms of weight * (sum of losses) / (count)."""

    def counts(self, batch: Any) -> Mapping[str, float]:
        """Term name -> the number of losses in its sum, known before the forward pass; may be 0.

        The name of a task's only term may be "".
        """
        ...

    def terms(self, model: nn.Module, batch: Any) -> Mapping[str, Term]:
        """Forward pass of one micro-batch."""
        ...


class JointTask(ABC):
    """A task with one loss over all rows of a step, which is no sum over rows.

    It is a `Task` of steps that are one micro-batch; `training.loop` computes those of several.
    """

    @abstractmethod
    def counts(self, batch: Any) -> Mapping[str, float]:
        """As `Task.counts`, of a term whose name is ""."""

    @abstractmethod
    def outputs(self, model: nn.Module, batch: Any) -> Tensor:
        """Forward pass of one micro-batch: float32 [rows, ...]."""

    @abstractmethod
    def term(self, outputs: Tensor, batches: Sequence[Any]) -> Term:
        """The loss of the step, times its count; `outputs` of its micro-batches, one after the other."""

    def terms(self, model: nn.Module, batch: Any) -> dict[str, Term]:
        """As `Task.terms`, of a batch that is the whole step."""
        return {"": self.term(self.outputs(model, batch), [batch])}


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
