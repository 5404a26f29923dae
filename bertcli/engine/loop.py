"""The one training loop: a generator that takes a step and yields its report.

Pretraining, fine-tuning and distillation differ only in their task and batches. The caller (`runs.fit`) uses
the reports to log, evaluate, save and stop.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

import torch
from torch import Tensor, nn

from bertcli.data.random import make_key
from bertcli.data.share import MicroBatch
from bertcli.distributed import ranks, wrapping
from bertcli.engine.cached_gradients import joined
from bertcli.engine.loss_scale import LossScale
from bertcli.engine.step_report import StepReport
from bertcli.engine.term_sums import TermSums, count_step
from bertcli.hardware import Precision, autocast, sum_in_order
from bertcli.memory.heap import keep_freed_memory
from bertcli.tasks.base import JointTask, Task, Term


@dataclass(frozen=True)
class LoopSettings:
    """Settings of every step; `rate`: the learning rate of a step counted from 0."""

    seed: int
    device: torch.device
    precision: Precision
    max_grad_norm: float
    rate: Callable[[int], float]


def train(
    model: nn.Module,
    task: Task,
    steps: Iterable[Sequence[MicroBatch]],
    optimizer: torch.optim.Optimizer,
    settings: LoopSettings,
    first_step: int,
    loss_scale: LossScale | None = None,
) -> Iterator[StepReport]:
    """Take a step for each sequence of micro-batches, starting with step number `first_step`.

    Before the backward pass, the loss is divided by the count of the full step over all ranks, so the
    division of a step into micro-batches and over ranks changes only rounding.

    Args:
        model: the result of `wrapping.distribute`.
        steps: this rank's share of each step (`data.share`).
        loss_scale: in fp16, of the first step; None: that of a new run.
    """
    scale = (loss_scale or LossScale()) if settings.precision == "fp16" else None
    sum_in_order(settings.device)
    if settings.device.type == "cpu":
        keep_freed_memory()
    model.train()
    parameters = [parameter for parameter in model.parameters() if parameter.requires_grad]
    for step, micro_batches in enumerate(steps, first_step):
        rate = settings.rate(step)
        for group in optimizer.param_groups:
            group["lr"] = rate * group.get("rate_scale", 1.0)

        counts, tokens = count_step(task, micro_batches)
        divisors = {name: count or 1.0 for name, count in counts.items()}
        # Reducing gives the mean over the ranks; the step's gradient is their sum.
        factor = ranks.num_ranks() * (scale.factor if scale else 1.0)
        sums = TermSums()
        first_pass = partial(_outputs, model=model, settings=settings, step=step)
        step_task, micro_batches = joined(task, micro_batches, first_pass)
        for turn, (number, batch, is_dummy) in enumerate(micro_batches, start=1):
            _seed_dropout(settings.seed, step, number)
            with wrapping.sync_gradients(model, now=turn == len(micro_batches)):
                with autocast(settings.precision, settings.device):
                    terms = step_task.terms(model, batch.to(settings.device))
                (_divided_loss(terms, divisors) * (0.0 if is_dummy else factor)).backward()
            sums.add(terms, is_dummy)

        if scale:
            _divide_gradients(parameters, scale.factor)
        losses, accuracies, _ = sums.means(counts)
        norm = nn.utils.get_total_norm(p.grad for p in parameters if p.grad is not None)
        grad_norm = float(wrapping.full_tensor(norm))
        finite = math.isfinite(grad_norm) and all(map(math.isfinite, losses.values()))
        if finite:
            if grad_norm > settings.max_grad_norm:  # else the factor is 1, and the pass would be useless
                nn.utils.clip_grads_with_norm_(parameters, settings.max_grad_norm, norm)
            optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        scale = scale.after(skipped=not finite) if scale else None

        yield StepReport(
            step=step + 1,
            losses=losses,
            accuracies=accuracies,
            learning_rate=rate,
            grad_norm=grad_norm,
            tokens=tokens,
            skipped=not finite,
            loss_scale=scale,
            weights=sums.weights,
        )


def _divided_loss(terms: Mapping[str, Term], divisors: Mapping[str, float]) -> Tensor:
    """The sum over terms of weight * loss / divisor."""
    return torch.stack([term.weight * term.loss / divisors[name] for name, term in terms.items()]).sum()


def _outputs(
    task: JointTask, micro_batch: MicroBatch, model: nn.Module, settings: LoopSettings, step: int
) -> Tensor:
    """Computed as in the second pass to the bit: without gradients, attention would draw other dropout."""
    _seed_dropout(settings.seed, step, micro_batch.number)
    with wrapping.sync_gradients(model, now=False), autocast(settings.precision, settings.device):
        return task.outputs(model, micro_batch.batch.to(settings.device))


def _divide_gradients(parameters: Iterable[nn.Parameter], factor: float) -> None:
    for parameter in parameters:
        if parameter.grad is not None:
            parameter.grad /= factor


def _seed_dropout(seed: int, step: int, micro_batch: int) -> None:
    """Dropout as a pure function of (seed, step, micro-batch), so that a resume draws it again."""
    torch.manual_seed(int(make_key(seed, "dropout", step, micro_batch)))
