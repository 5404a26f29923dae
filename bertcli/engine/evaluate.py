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
    totals: dict[str, tuple[float, int, float]] = {}  # term -> (sum of losses, right predictions, count)
    tokens = 0
    for batch in batches:
        tokens += batch.num_tokens
        for micro_batch in batch.split(micro_batch_size):
            with autocast(precision, device):
                terms = task.terms(model, micro_batch.to(device))
            for name, count in task.counts(micro_batch).items():
                loss, correct, seen = totals.get(name, (0.0, 0, 0.0))
                totals[name] = (
                    loss + float(terms[name].loss),
                    correct + int(terms[name].correct or 0),
                    seen + count,
                )
    model.train(was_training)
    return Scores(
        losses={name: loss / count for name, (loss, _, count) in totals.items()},
        accuracies={name: correct / count for name, (_, correct, count) in totals.items()},
        tokens=tokens,
    )
