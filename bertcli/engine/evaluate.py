"""A model and some batches -> mean losses and accuracies, summed over all of them and divided once."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import nn

from bertcli.hardware import Precision, autocast
from bertcli.tasks.base import Task, TaskBatch


@dataclass(frozen=True)
class Scores:
    """Term name -> mean loss, share of right predictions; a task's metrics; and the real tokens read."""

    losses: dict[str, float]
    accuracies: dict[str, float]
    tokens: int
    metrics: Mapping[str, Any] = field(default_factory=dict)

    @property
    def loss(self) -> float:
        return sum(self.losses.values())

    @property
    def numbers(self) -> dict[str, float]:
        """The metrics that are one number: no tables."""
        return {name: value for name, value in self.metrics.items() if isinstance(value, float)}


@torch.inference_mode()
def evaluate(
    model: nn.Module,
    task: Task,
    batches: Iterable[TaskBatch],
    device: torch.device,
    precision: Precision,
    micro_batch_size: int,
) -> Scores:
    """Read the batches without dropout; the model's training mode is put back afterwards."""
    was_training = model.training
    model.eval()
    losses: dict[str, float] = {}
    correct: dict[str, int] = {}
    counts: dict[str, float] = {}
    tokens = 0
    for batch in batches:
        tokens += batch.num_tokens
        for micro_batch in batch.split(micro_batch_size):
            with autocast(precision, device):
                terms = task.terms(model, micro_batch.to(device))
            for name, count in task.counts(micro_batch).items():
                counts[name] = counts.get(name, 0) + count
                losses[name] = losses.get(name, 0.0) + float(terms[name].loss)
                if (right := terms[name].correct) is not None:
                    correct[name] = correct.get(name, 0) + int(right)
    model.train(was_training)
    return Scores(
        losses={name: loss / counts[name] for name, loss in losses.items()},
        accuracies={name: number / counts[name] for name, number in correct.items()},
        tokens=tokens,
    )
