"""The forward and backward pass of one micro-batch: the part of a step that a GPU is busy with."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

import torch
from torch import Tensor, nn

from bertcli.hardware import Precision, autocast
from bertcli.tasks.base import Task, Term


class MicroPass(Protocol):
    def __call__(self, batch: Any, divisors: Mapping[str, float], factor: float) -> Mapping[str, Term]:
        """Add to the parameters' gradients those of the sum over terms of loss / divisor, times `factor`.

        Returns the terms; their tensors hold until the next call.
        """
        ...


class EagerPass:
    """Every kernel started from Python."""

    def __init__(self, model: nn.Module, task: Task, device: torch.device, precision: Precision) -> None:
        self._model, self._task, self._device = model, task, device
        self._precision: Precision = precision

    def __call__(self, batch: Any, divisors: Mapping[str, float], factor: float) -> Mapping[str, Term]:
        with autocast(self._precision, self._device):
            terms = self._task.terms(self._model, batch.to(self._device))
        (divided_loss(terms, divisors) * factor).backward()
        return terms


def divided_loss(terms: Mapping[str, Term], divisors: Mapping[str, float | Tensor]) -> Tensor:
    """The sum over terms of loss / divisor."""
    return torch.stack([term.loss / divisors[name] for name, term in terms.items()]).sum()
