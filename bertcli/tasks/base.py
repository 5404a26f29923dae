"""The interface between a task and the training loop."""

from __future__ import annotations

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

    It is a `Task` of steps that are one micro-batch; `engine.cached_gradients` computes those of several.
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
