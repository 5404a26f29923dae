"""The training loop's report of a step."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from bertcli.engine.loss_scale import LossScale


@dataclass(frozen=True)
class StepReport:
    """One optimizer step.

    Attributes:
        step: number of steps with this one.
        losses: term name -> mean loss of this step.
        weights: term name -> its factor in the loss of the step; of other terms 1.
        accuracies: term name -> share of right predictions, of terms that count them.
        grad_norm: of the whole gradient, before clipping.
        tokens: real tokens of this step.
        skipped: the loss or the gradient was not finite, and the weights did not change.
        loss_scale: of the next step; None except in fp16.
    """

    step: int
    losses: dict[str, float]
    accuracies: dict[str, float]
    learning_rate: float
    grad_norm: float
    tokens: int
    skipped: bool
    loss_scale: LossScale | None = None
    weights: Mapping[str, float] = field(default_factory=dict)

    @property
    def loss(self) -> float:
        """What the step minimizes: the weighted sum over terms."""
        return weighted_sum(self.losses, self.weights)


def weighted_sum(losses: Mapping[str, float], weights: Mapping[str, float]) -> float:
    return sum(weights.get(name, 1.0) * loss for name, loss in losses.items())
