"""A model and batches -> mean losses and accuracies: sums over all batches, divided once."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import nn

from bertcli.data.share import MicroBatch
from bertcli.distributed import wrapping
from bertcli.engine.step_report import weighted_sum
from bertcli.engine.term_sums import TermSums, count_step
from bertcli.hardware import Precision, autocast
from bertcli.tasks.base import Task


@dataclass(frozen=True)
class Scores:
    """Term name -> mean loss and accuracy; a task's metrics; the number of real tokens; weights as in
    `StepReport`."""

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
        """{"positive_label": LABEL} where `f1` is that of one of two labels; else empty."""
        return {name: value for name, value in self.metrics.items() if name == "positive_label"}

    def title(self, name: str) -> str:
        """The name of a metric for people: `f1 of spam`, where it is that of one of two labels."""
        return f"f1 of {self.metrics['positive_label']}" if name == "f1" and self.label_of_f1 else name


@contextmanager
def evaluation_mode(model: nn.Module) -> Iterator[None]:
    """Without dropout; afterwards the model is ready for training, if it was before."""
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
    """Evaluate this rank's share of all steps without dropout; the scores are those of all ranks together."""
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
