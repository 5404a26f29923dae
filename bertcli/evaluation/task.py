"""A task model and labeled examples -> its predictions, loss and metrics."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor, nn

from bertcli.distributed import ranks, wrapping
from bertcli.evaluation.evaluate import Scores
from bertcli.hardware import Precision
from bertcli.inference.examples import Runner
from bertcli.tasks.supervised import Item, LabeledBatch, LabeledTask, Prediction


def judge(
    model: nn.Module,
    task: LabeledTask,
    examples: Sequence[Any],
    items: Sequence[Item],
    pad_id: int,
    device: torch.device,
    precision: Precision,
    batch_size: int,
) -> tuple[Scores, list[Prediction]]:
    """Answer all examples without dropout, each rank a part; the model's training mode is put back.

    `items` are those that `LabeledTask.encode` made of `examples`, with targets.
    """
    number, parts = (0, 1) if wrapping.is_spread(model) else (ranks.rank(), ranks.num_ranks())
    first, last = (len(examples) * part // parts for part in (number, number + 1))
    own_items = [
        replace(item, example=item.example - first) for item in items if first <= item.example < last
    ]
    loss = torch.zeros((), dtype=torch.float64)

    def add_loss(logits: Tensor, batch: LabeledBatch) -> None:
        loss.add_(task.term(logits, batch).loss.double().cpu())

    was_training = model.training
    model.eval()
    runner = Runner(model, task, pad_id, device, precision, batch_size, add_loss)
    predictions, total = runner.predict(examples[first:last], own_items), float(loss)
    model.train(was_training)
    if parts > 1:
        predictions, total = ranks.gather(predictions), ranks.add_up([total])[0]
    everything = LabeledBatch(tuple(items), pad_id)
    scores = Scores(
        losses={"": total / task.count(everything)},
        accuracies={},
        tokens=everything.num_tokens,
        metrics=task.score(examples, predictions),
    )
    return scores, predictions
