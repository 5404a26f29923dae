"""Evaluation of a model on batches: mean losses and accuracies."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import nn

from bertcli.batches.share import MicroBatch
from bertcli.objectives.base import Task
from bertcli.system.hardware import Precision, autocast
from bertcli.training import wrapping
from bertcli.training.step_report import TermSums, count_step, weighted_sum


@dataclass(frozen=True)
class Scores:
    """The scores of an evaluation.

    Attributes:
        losses, accuracies: term name -> mean: the sum over all batches, divided once.
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
        """The weighted sum over terms."""
        return weighted_sum(self.losses, self.weights)

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
    sums, tokens = TermSums(), 0
    counts: dict[str, float] = {}
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
