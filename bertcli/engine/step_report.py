"""What the loop tells of a step that it has taken."""

from __future__ import annotations

from dataclasses import dataclass

from bertcli.engine.loss_scale import LossScale


@dataclass(frozen=True)
class StepReport:
    """One optimizer step.

    Attributes:
        step: steps taken, this one included.
        losses: term name -> mean loss, of this step alone.
        accuracies: term name -> share of right predictions, where a term counts them.
        grad_norm: of the whole gradient, before clipping.
        tokens: real tokens of this step.
        skipped: the loss or the gradient was not finite, and the weights were left as they were.
        loss_scale: of the next step; None where the precision needs none.
    """

    step: int
    losses: dict[str, float]
    accuracies: dict[str, float]
    learning_rate: float
    grad_norm: float
    tokens: int
    skipped: bool
    loss_scale: LossScale | None = None

    @property
    def loss(self) -> float:
        """The sum over terms."""
        return sum(self.losses.values())
