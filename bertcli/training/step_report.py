"""The report of a training step, and the sums of losses and accuracies behind it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from torch import Tensor

from bertcli.batches.share import MicroBatch
from bertcli.objectives.base import Task, Term
from bertcli.training import ranks
from bertcli.training.optimizer import LossScale


@dataclass(frozen=True)
class StepReport:
    """One optimizer step.

    Attributes:
        step: number of steps, including this one.
        losses: term name -> mean loss of this step.
        accuracies: term name -> share of right predictions, for terms that count them.
        grad_norm: norm of the whole gradient, before clipping.
        tokens: number of real tokens of this step.
        skipped: True if loss or gradient was not finite, so that the weights did not change.
        loss_scale: the scale of the next step; None except in fp16.
        weights: term name -> its factor in the loss of the step; terms that are not listed have 1.
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
        """The loss that the step minimizes: the weighted sum over terms."""
        return weighted_sum(self.losses, self.weights)


def weighted_sum(losses: Mapping[str, float], weights: Mapping[str, float]) -> float:
    return sum(weights.get(name, 1.0) * loss for name, loss in losses.items())


def count_step(task: Task, micro_batches: Sequence[MicroBatch]) -> tuple[dict[str, float], int]:
    """The count of each term of a step, and the number of real tokens, over all ranks."""
    counts: dict[str, float] = {}
    tokens = 0
    for _, batch, is_dummy in micro_batches:
        for name, count in task.counts(batch).items():
            counts[name] = counts.get(name, 0.0) + (0.0 if is_dummy else count)
        tokens += 0 if is_dummy else batch.num_tokens
    *totals, all_tokens = ranks.add_up([*counts.values(), tokens])
    return dict(zip(counts, totals, strict=True)), int(all_tokens)


def mean(total: float, count: float) -> float:
    """The mean; it is 0 for a count of 0, as in the MLM loss of rows that hold only [UNK]."""
    return total / (count or 1.0)


class TermSums:
    """The sums of this rank's terms in their units, on their device until `means` reads them.

    `weights`: term name -> factor of its sum in the loss of the step.
    """

    def __init__(self) -> None:
        self.weights: dict[str, float] = {}
        self._losses: dict[str, Tensor] = {}
        self._correct: dict[str, Tensor] = {}
        self._parts: dict[str, Tensor] = {}
        self._wholes: dict[str, Tensor] = {}

    def add(self, terms: Mapping[str, Term], is_dummy: bool) -> None:
        """Add the sums of a micro-batch; a dummy one counts nothing."""
        weight = 0 if is_dummy else 1
        for name, term in terms.items():
            self.weights[name] = term.weight / term.unit
            _add(self._losses, name, term.loss.detach().double() * (weight * term.unit))
            if term.correct is not None:
                _add(self._correct, name, term.correct * weight)
            for share, (part, whole) in term.shares.items():
                _add(self._parts, share, part * weight)
                _add(self._wholes, share, whole * weight)

    def means(
        self, counts: Mapping[str, float]
    ) -> tuple[dict[str, float], dict[str, float], dict[str, float]]:
        """Mean losses, accuracies of terms that count right predictions, and shares, over all ranks."""
        all_sums = [*self._losses.values(), *self._correct.values()]
        all_sums += [*self._parts.values(), *self._wholes.values()]
        totals = iter(ranks.add_up([float(total) for total in all_sums]))
        losses = {name: mean(next(totals), counts[name]) for name in self._losses}
        accuracies = {name: mean(next(totals), counts[name]) for name in self._correct}
        parts = {name: next(totals) for name in self._parts}
        return losses, accuracies, {name: mean(part, next(totals)) for name, part in parts.items()}


def _add(sums: dict[str, Tensor], name: str, value: Tensor) -> None:
    sums[name] = sums[name] + value if name in sums else value
