"""The training loop, and a loss over all rows of a step with the memory of a micro-batch.

Such a loss uses GradCache (Gao et al. 2021, "Scaling Deep Contrastive Learning Batch Size under Memory
Limited Setup", section 3.2). Each micro-batch is computed twice. The first pass keeps only its outputs. The
loss of all outputs gives the gradient of each output. The second pass propagates these gradients to the
weights.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

from bertcli.batches.order import make_key
from bertcli.batches.share import MicroBatch
from bertcli.objectives.base import JointTask, Task, Term
from bertcli.system.hardware import Precision, autocast, sum_in_order
from bertcli.system.memory import keep_freed_memory
from bertcli.training import ranks, wrapping
from bertcli.training.optimizer import LossScale
from bertcli.training.scores import StepReport, TermSums, count_step


@dataclass(frozen=True)
class CachedBatch:
    """A micro-batch with the gradient of its outputs.

    Attributes:
        loss: the part of the step's loss that is reported with this micro-batch.
    """

    batch: Any
    gradient: Tensor
    loss: Tensor

    def to(self, device: torch.device) -> CachedBatch:
        """The batch on a device; the gradient is there already."""
        return replace(self, batch=self.batch.to(device))


@dataclass(frozen=True)
class SecondPass:
    """A task on `CachedBatch`: the value of its term is the step's loss, the gradient is the cached one."""

    task: JointTask

    def counts(self, batch: CachedBatch) -> dict[str, float]:
        return dict(self.task.counts(batch.batch))

    def terms(self, model: nn.Module, batch: CachedBatch) -> dict[str, Term]:
        carried = (self.task.outputs(model, batch.batch).float() * batch.gradient).sum()
        return {"": Term(batch.loss + carried - carried.detach(), correct=None)}


def joined(
    task: Task,
    micro_batches: Sequence[MicroBatch],
    first_pass: Callable[[JointTask, MicroBatch], Tensor],
) -> tuple[Task, Sequence[MicroBatch]]:
    """The task and the micro-batches of a step, so that the loop can process them one by one.

    Both are returned unchanged, unless the loss joins rows of several micro-batches or ranks.

    Args:
        first_pass: a function that computes the outputs of a micro-batch with the dropout of the second pass.
    """
    if not isinstance(task, JointTask) or (len(micro_batches) == 1 and ranks.num_ranks() == 1):
        return task, micro_batches
    own = [(each, first_pass(task, each).detach().float()) for each in micro_batches]
    device = own[0][1].device
    # Objects of other ranks are sent over the CPU.
    sent = [(each.number, each.batch, outputs.cpu()) for each, outputs in own if not each.is_dummy]
    numbers, batches, parts = zip(*sorted(ranks.gather(sent), key=lambda part: part[0]), strict=True)
    outputs = torch.cat(parts).to(device).requires_grad_()
    loss = task.joint_term(outputs, batches).loss
    (gradient,) = torch.autograd.grad(loss, outputs)
    gradients = dict(zip(numbers, gradient.split([len(part) for part in parts]), strict=True))
    cached = [
        each._replace(
            batch=CachedBatch(
                each.batch,
                torch.zeros_like(of_batch) if each.is_dummy else gradients[each.number],
                loss.detach() * (each.number == 0),
            )
        )
        for each, of_batch in own
    ]
    return SecondPass(task), cached


@dataclass(frozen=True)
class LoopSettings:
    """Settings of every step. `rate`: step number, counted from 0 -> learning rate."""

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
        steps: this rank's share of each step (`batches.share`).
        loss_scale: the scale of the first step in fp16; None: the scale of a new run.
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
            _seed_dropout(settings, step, number)
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
            if grad_norm > settings.max_grad_norm:  # a smaller norm needs no change
                nn.utils.clip_grads_with_norm_(parameters, settings.max_grad_norm, norm)
            optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        scale = scale.after(skipped=not finite) if scale else None

        yield StepReport(
            losses,
            accuracies,
            tokens,
            weights=sums.weights,
            step=step + 1,
            learning_rate=rate,
            grad_norm=grad_norm,
            skipped=not finite,
            loss_scale=scale,
        )


def _divided_loss(terms: Mapping[str, Term], divisors: Mapping[str, float]) -> Tensor:
    """The sum over terms of weight * loss / divisor."""
    return torch.stack([term.weight * term.loss / divisors[name] for name, term in terms.items()]).sum()


def _outputs(
    task: JointTask, micro_batch: MicroBatch, model: nn.Module, settings: LoopSettings, step: int
) -> Tensor:
    """The outputs of a micro-batch, equal to those of the second pass to the bit.

    Gradients are on, because attention would draw other dropout without them.
    """
    _seed_dropout(settings, step, micro_batch.number)
    with wrapping.sync_gradients(model, now=False), autocast(settings.precision, settings.device):
        return task.outputs(model, micro_batch.batch.to(settings.device))


def _divide_gradients(parameters: Iterable[nn.Parameter], factor: float) -> None:
    for parameter in parameters:
        if parameter.grad is not None:
            parameter.grad /= factor


def _seed_dropout(settings: LoopSettings, step: int, micro_batch: int) -> None:
    """Make dropout a pure function of (seed, step, micro-batch), so that a resume draws the same."""
    # `torch.manual_seed` would note a stack trace for each kind of device that is not there: a millisecond.
    seed = torch.default_generator.manual_seed if settings.device.type == "cpu" else torch.manual_seed
    seed(int(make_key(settings.seed, "dropout", step, micro_batch)))
