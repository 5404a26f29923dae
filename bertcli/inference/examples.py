"""Items of a labeled task -> logits -> predictions, in the order of the examples."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

import torch
from torch import Tensor, nn

from bertcli.hardware import Precision, autocast
from bertcli.inference.rows import by_length, only_numbers
from bertcli.tasks.supervised import Item, LabeledBatch, LabeledTask, Prediction, forward


@dataclass(frozen=True)
class Runner:
    """Computes a model's answers to a task's items, batch by batch, without dropout.

    Attributes:
        batch_size: items of similar length at once.
        watch: called with the logits of each batch before they are split, for the loss.
        in_training: training follows, which says itself that it diverged. FSDP cannot train parameters that
            it allocated in torch's inference mode, which is faster than `torch.no_grad`.
    """

    model: nn.Module
    task: LabeledTask
    pad_id: int
    device: torch.device
    precision: Precision
    batch_size: int
    watch: Callable[[Tensor, LabeledBatch], None] = lambda logits, batch: None
    in_training: bool = False

    def logits(self, items: Sequence[Item]) -> list[Tensor]:
        """The logits of each item, fp32 on the CPU. The model must be in evaluation mode."""
        with torch.no_grad() if self.in_training else torch.inference_mode():
            return by_length(list(items), self.batch_size, self._compute)

    def predict(self, examples: Sequence[Any], items: Sequence[Item]) -> list[Prediction]:
        """The answer for each example; `items` are what `LabeledTask.encode` returned for them."""
        answered = zip(items, self.logits(items), strict=True)
        predictions = []
        for number, group in groupby(answered, key=lambda pair: pair[0].example):
            own, logits = zip(*group, strict=True)
            predictions.append(self.task.predict(examples[number], own, logits))
        assert len(predictions) == len(examples)
        return predictions

    def _compute(self, items: list[Item]) -> list[Tensor]:
        batch = LabeledBatch(tuple(items), self.pad_id, self.device)
        with autocast(self.precision, self.device):
            logits = forward(self.model, batch)
        self.watch(logits, batch)
        logits = logits.float().cpu()
        return self.task.split_logits(logits if self.in_training else only_numbers(logits), batch)
