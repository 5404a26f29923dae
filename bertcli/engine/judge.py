"""A task model and labelled examples -> its predictions, loss and metrics."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn

from bertcli.engine.evaluate import Scores
from bertcli.hardware import Precision
from bertcli.inference.labelled import Runner
from bertcli.tasks.labelled import Item, LabelledBatch, LabelledTask, Prediction


def judge(
    model: nn.Module,
    task: LabelledTask,
    examples: Sequence[Any],
    items: Sequence[Item],
    pad_id: int,
    device: torch.device,
    precision: Precision,
    batch_size: int,
) -> tuple[Scores, list[Prediction]]:
    """Answer all examples without dropout; the model's training mode is put back afterwards.

    `items` are those that `LabelledTask.encode` made of `examples`, with targets.
    """
    loss = torch.zeros((), dtype=torch.float64)

    def add_loss(logits: Tensor, batch: LabelledBatch) -> None:
        loss.add_(task.term(logits, batch).loss.double().cpu())

    was_training = model.training
    model.eval()
    predictions = Runner(model, task, pad_id, device, precision, batch_size, add_loss).predict(
        examples, items
    )
    model.train(was_training)
    everything = LabelledBatch(tuple(items), pad_id)
    scores = Scores(
        losses={"": float(loss) / task.count(everything)},
        accuracies={},
        tokens=everything.num_tokens,
        metrics=task.score(examples, predictions),
    )
    return scores, predictions
