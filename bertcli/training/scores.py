"""The scores of an evaluation and of a training step, and the sums of losses and accuracies behind them."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn

from bertcli.batches.share import MicroBatch
from bertcli.objectives.base import Task, Term
from bertcli.system.hardware import Precision, autocast
from bertcli.training import ranks, wrapping
from bertcli.training.optimizer import LossScale


@dataclass(frozen=True)
class Scores:
    """The scores of an evaluation.

    Attributes:
        losses, accuracies: term name -> mean: the sum over all batches, divided once. A term that does not
            count right predictions has no accuracy.
        tokens: number of real tokens.
        metrics: the metrics of a task.
        weights: term name -> its factor in the loss; terms that are not listed have 1.
    """

    losses: dict[str, float]
    accuracies: dict[str, float]
    tokens: int
    metrics: Mapping[str, Any] = field(default_factory=dict)
    weights: Mapping[str, float] = field(default_factory=dict)

    @property
    def loss(self) -> float:
        """The weighted sum over terms, which training minimizes."""
        return sum(self.weights.get(name, 1.0) * loss for name, loss in self.losses.items())

    @property
    def numbers(self) -> dict[str, float]:
        """The metrics that are numbers, not tables."""
        return {name: value for name, value in self.metrics.items() if isinstance(value, float)}

    @property
    def label_of_f1(self) -> dict[str, str]:
        """{"positive_label": LABEL} if `f1` is the F1 of one of two labels; else empty."""
        return {name: value for name, value in self.metrics.items() if name == "positive_label"}

    def title(self, name: str) -> str:
        """The name of a metric for people: `f1 of spam` if it is the F1 of one of two labels."""
        return f"f1 of {self.metrics['positive_label']}" if name == "f1" and self.label_of_f1 else name


def mixed(sources: Mapping[str, Scores], shares: Mapping[str, float]) -> Scores:
    """The scores of a text of several sources, each with its share, and the losses of each by its name.

    A term that a source lacks, such as that of pairs, is the mean of the others. A term that only sources
    with a share of 0 have is their plain mean.
    """
    if len(sources) == 1:
        return next(iter(sources.values()))

    def joined(of: str) -> dict[str, float]:
        values = {name: getattr(scores, of) for name, scores in sources.items()}
        means: dict[str, float] = {}
        for term in dict.fromkeys(term for terms in values.values() for term in terms):
            having = [name for name, terms in values.items() if term in terms]
            weights = [shares[name] for name in having]
            weights = weights if any(weights) else [1.0] * len(having)
            total = sum(weight * values[name][term] for weight, name in zip(weights, having, strict=True))
            means[term] = total / sum(weights)
        return means

    own = {
        f"{name}/{term}_loss": loss
        for name, scores in sources.items()
        for term, loss in scores.losses.items()
    }
    return Scores(
        joined("losses"),
        joined("accuracies"),
        tokens=sum(scores.tokens for scores in sources.values()),
        metrics=joined("numbers") | own,
        weights=next(iter(sources.values())).weights,
    )


@dataclass(frozen=True, kw_only=True)
class StepReport(Scores):
    """One optimizer step: its scores, without metrics, and how it was taken.

    Attributes:
        step: number of steps, including this one.
        learning_rate: the rate that this step was taken with, before the factors of single parameters.
        grad_norm: norm of the whole gradient, before clipping.
        skipped: True if loss or gradient was not finite, so that the weights did not change.
        loss_scale: the scale of the next step; None except in fp16.
    """

    step: int
    learning_rate: float
    grad_norm: float
    skipped: bool
    loss_scale: LossScale | None = None


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


_KINDS = ("loss", "correct", "part", "whole")
"""The sums of a term: its losses, right predictions, and the parts and wholes of its shares."""


class TermSums:
    """The sums of this rank's terms in their units, on their device until `means` reads them.

    `weights`: term name -> factor of its sum in the loss of the step.
    """

    def __init__(self) -> None:
        self.weights: dict[str, float] = {}
        self._sums: dict[str, dict[str, Tensor]] = {kind: {} for kind in _KINDS}

    def add(self, terms: Mapping[str, Term], is_dummy: bool) -> None:
        """Add the sums of a micro-batch; a dummy one counts nothing."""
        weight = 0 if is_dummy else 1
        for name, term in terms.items():
            self.weights[name] = term.weight / term.unit
            self._add("loss", name, term.loss.detach().double() * (weight * term.unit))
            if term.correct is not None:
                self._add("correct", name, term.correct * weight)
            for share, (part, whole) in term.shares.items():
                self._add("part", share, part * weight)
                self._add("whole", share, whole * weight)

    def means(
        self, counts: Mapping[str, float]
    ) -> tuple[dict[str, float], dict[str, float], dict[str, float]]:
        """Mean losses, accuracies of terms that count right predictions, and shares, over all ranks."""
        own = [float(total) for sums in self._sums.values() for total in sums.values()]
        totals = iter(ranks.add_up(own))
        losses, correct, parts, wholes = (
            {name: next(totals) for name in self._sums[kind]} for kind in _KINDS
        )
        accuracies = {name: mean(total, counts[name]) for name, total in correct.items()}
        shares = {name: mean(part, wholes[name]) for name, part in parts.items()}
        return {name: mean(total, counts[name]) for name, total in losses.items()}, accuracies, shares

    def _add(self, kind: str, name: str, value: Tensor) -> None:
        sums = self._sums[kind]
        sums[name] = sums[name] + value if name in sums else value


@contextmanager
def evaluation_mode(model: nn.Module) -> Iterator[None]:
    """A context without dropout; at its end the model is in training mode again if it was before."""
    was_training = model.training
    model.eval()
    try:
        yield
    finally:
        model.train(was_training)
        wrapping.reshard(model)


@torch.no_grad()
def evaluate(
    model: nn.Module,
    task: Task,
    steps: Iterable[Sequence[MicroBatch]],
    device: torch.device,
    precision: Precision,
) -> Scores:
    """Evaluate this rank's share of all steps without dropout; return the scores over all ranks."""
    sums = TermSums()
    counts: dict[str, float] = {}
    tokens = 0
    with evaluation_mode(model):
        for micro_batches in steps:
            step_counts, step_tokens = count_step(task, micro_batches)
            counts = {name: counts.get(name, 0.0) + count for name, count in step_counts.items()}
            tokens += step_tokens
            for _, batch, is_dummy in micro_batches:
                with autocast(precision, device):
                    sums.add(task.terms(model, batch.to(device)), is_dummy)
    losses, accuracies, shares = sums.means(counts)
    return Scores(losses, accuracies, tokens, metrics=shares, weights=sums.weights)
