"""The contract between a task and the loop that trains it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol, Self

import torch
from torch import Tensor, nn


class TaskBatch(Protocol):
    """What a task reads in one forward pass."""

    @property
    def num_tokens(self) -> int:
        """Real tokens, of which a run reports how many it reads a second."""
        ...

    def to(self, device: torch.device) -> Self:
        """The batch on a device."""
        ...


@dataclass(frozen=True)
class Term:
    """One term of the loss over one micro-batch: sums, divided only once the whole batch is known.

    Attributes:
        loss: float32 scalar, the sum of the losses; differentiable.
        correct: int64 scalar, how many predictions were right; None where none can be right or wrong.
    """

    loss: Tensor
    correct: Tensor | None


class Task(Protocol):
    """What a model learns. The loss of a step is the sum over terms of (sum of losses) / (count)."""

    def counts(self, batch: Any) -> Mapping[str, float]:
        """Term name -> how many things it sums over in the batch, known before the forward pass; maybe 0.

        The name of a task's only term may be "": it is the loss, and needs no other name.
        """
        ...

    def terms(self, model: nn.Module, batch: Any) -> Mapping[str, Term]:
        """Forward pass of one micro-batch."""
        ...
