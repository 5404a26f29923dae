"""What every labeled task has to keep to, whatever its model: neighbors and splits change nothing."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import nn

from bertcli.batches.share import Share
from bertcli.families.family import HeadKind
from bertcli.model.task_models import build_task_model
from bertcli.tasks.supervised import Item, LabeledBatch, LabeledTask
from tests.folders.folders import ODD


def task_model(head: HeadKind, num_outputs: int = 1) -> nn.Module:
    """A tiny model of `tests.folders.folders.ODD`, none of whose outputs is near another."""
    torch.manual_seed(0)
    return build_task_model(head, ODD, num_outputs).eval()


def batch(items: Sequence[Item]) -> LabeledBatch:
    return LabeledBatch(tuple(items), pad_id=0)


def assert_neighbors_change_nothing(task: LabeledTask, model: nn.Module, items: Sequence[Item]) -> None:
    """The logits of an item are the same alone and among longer ones, where it is padded."""
    with torch.no_grad():
        together = task.split_logits(model(*batch(items).rows), batch(items))
        for item, logits in zip(items, together, strict=True):
            (alone,) = task.split_logits(model(*batch([item]).rows), batch([item]))
            torch.testing.assert_close(logits, alone, rtol=1e-5, atol=1e-5)
    assert len({tuple(logits.shape) for logits in together}) > 1


def assert_splits_change_nothing(task: LabeledTask, model: nn.Module, items: Sequence[Item]) -> None:
    """Losses, counts and gradients of micro-batches add up to those of the whole batch."""
    whole = batch(items)

    def sums(parts: Sequence[LabeledBatch]) -> tuple[float, float, list[torch.Tensor]]:
        model.zero_grad()
        losses = [task.terms(model, part)[""].loss for part in parts]
        loss = torch.stack(losses).sum()
        loss.backward()
        gradients = [parameter.grad.clone() for parameter in model.parameters() if parameter.grad is not None]
        return loss.item(), sum(task.counts(part)[""] for part in parts), gradients

    loss, count, gradients = sums([whole])
    assert loss > 0
    assert all(bool(gradient.isfinite().all()) for gradient in gradients)
    for micro in (1, 2, 3):
        parts = [micro_batch.batch for micro_batch in whole.micro_batches(Share(micro))]
        part_loss, part_count, part_gradients = sums(parts)
        assert part_count == count
        torch.testing.assert_close(part_loss, loss, rtol=1e-5, atol=1e-5)
        torch.testing.assert_close(part_gradients, gradients, rtol=1e-4, atol=1e-4)
