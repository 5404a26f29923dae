"""A loss over all rows of a step, with the memory of a micro-batch (GradCache; Gao et al. 2021, "Scaling Deep
Contrastive Learning Batch Size under Memory Limited Setup", section 3.2).

Each micro-batch is computed twice. The first pass keeps its outputs alone; the loss of all outputs gives the
gradient of each; the second pass continues it to the weights.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor, nn

from bertcli.data.share import MicroBatch
from bertcli.distributed import ranks
from bertcli.tasks.base import JointTask, Task, Term


@dataclass(frozen=True)
class CachedBatch:
    """A micro-batch with the gradient of its outputs.

    Attributes:
        loss: the part of the step's loss that is reported with it.
    """

    batch: Any
    gradient: Tensor
    loss: Tensor

    @property
    def num_tokens(self) -> int:
        """Of the batch."""
        return self.batch.num_tokens

    def to(self, device: torch.device) -> CachedBatch:
        """The batch on a device; the gradient is there already."""
        return replace(self, batch=self.batch.to(device))


@dataclass(frozen=True)
class SecondPass:
    """A task of `CachedBatch`: its term has the step's loss as value, and the cached gradient as gradient."""

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
    """The task and the micro-batches of a step, so that the loop can take one after the other.

    They are the given ones, unless the loss joins rows that are not in one micro-batch of one rank.

    Args:
        first_pass: computes the outputs of a micro-batch, with the dropout of the second pass.
    """
    if not isinstance(task, JointTask) or (len(micro_batches) == 1 and ranks.num_ranks() == 1):
        return task, micro_batches
    own = [(each, first_pass(task, each).detach().float()) for each in micro_batches]
    device = own[0][1].device
    # Objects of other ranks are sent over the CPU.
    sent = [(each.number, each.batch, outputs.cpu()) for each, outputs in own if not each.is_dummy]
    numbers, batches, parts = zip(*sorted(ranks.gather(sent), key=lambda part: part[0]), strict=True)
    outputs = torch.cat(parts).to(device).requires_grad_()
    loss = task.term(outputs, batches).loss
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
