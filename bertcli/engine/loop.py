"""The one training loop: a generator that takes a step and yields its report.

Pretraining, fine-tuning and distillation differ only in their task and batches. What to do with a report
(log, evaluate, save, stop) is the caller's business: `engine.fit`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from bertcli.data.random import make_key
from bertcli.hardware import Precision, autocast
from bertcli.tasks.base import Task, TaskBatch


@dataclass(frozen=True)
class LoopSettings:
    """How steps are taken; `rate` gives the learning rate of a step counted from 0."""

    seed: int
    device: torch.device
    precision: Precision
    micro_batch_size: int
    max_grad_norm: float
    rate: Callable[[int], float]


@dataclass(frozen=True)
class StepReport:
    """One optimiser step.

    Attributes:
        step: steps taken, this one included.
        losses: term name -> mean loss, of this step alone.
        accuracies: term name -> share of right predictions, where a term counts them.
        grad_norm: of the whole gradient, before clipping.
        tokens: real tokens of this step.
        skipped: the loss or the gradient was not finite, and the weights were left as they were.
    """

    step: int
    losses: dict[str, float]
    accuracies: dict[str, float]
    learning_rate: float
    grad_norm: float
    tokens: int
    skipped: bool

    @property
    def loss(self) -> float:
        return sum(self.losses.values())


def train(
    model: nn.Module,
    task: Task,
    batches: Iterable[TaskBatch],
    optimizer: torch.optim.Optimizer,
    settings: LoopSettings,
    first_step: int,
) -> Iterator[StepReport]:
    """Take a step for each batch, from step number `first_step` on.

    The loss is divided by what the whole step counts before the backward pass, so cutting a batch into
    micro-batches changes nothing but rounding.
    """
    model.train()
    parameters = [parameter for parameter in model.parameters() if parameter.requires_grad]
    for step, batch in enumerate(batches, first_step):
        rate = settings.rate(step)
        for group in optimizer.param_groups:
            group["lr"] = rate * group.get("rate_scale", 1.0)

        counts = task.counts(batch)
        loss_sums: dict[str, Tensor | float] = dict.fromkeys(counts, 0.0)
        correct_sums: dict[str, Tensor | int] = {}
        for number, micro_batch in enumerate(batch.split(settings.micro_batch_size)):
            _seed_dropout(settings.seed, step, number)
            with autocast(settings.precision, settings.device):
                terms = task.terms(model, micro_batch.to(settings.device))
            torch.stack([term.loss / counts[name] for name, term in terms.items()]).sum().backward()
            for name, term in terms.items():
                loss_sums[name] += term.loss.detach().double()
                if term.correct is not None:
                    correct_sums[name] = correct_sums.get(name, 0) + term.correct

        grad_norm = float(nn.utils.clip_grad_norm_(parameters, settings.max_grad_norm))
        losses = {name: float(total) / counts[name] for name, total in loss_sums.items()}
        finite = math.isfinite(grad_norm) and all(map(math.isfinite, losses.values()))
        if finite:
            optimizer.step()
        optimizer.zero_grad(set_to_none=True)

        yield StepReport(
            step=step + 1,
            losses=losses,
            accuracies={name: float(total) / counts[name] for name, total in correct_sums.items()},
            learning_rate=rate,
            grad_norm=grad_norm,
            tokens=batch.num_tokens,
            skipped=not finite,
        )


def _seed_dropout(seed: int, step: int, micro_batch: int) -> None:
    """Dropout as a pure function of (seed, step, micro-batch), so that a resume draws it again."""
    torch.manual_seed(int(make_key(seed, "dropout", step, micro_batch)))
