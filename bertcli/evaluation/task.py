"""A task model and labeled examples -> its predictions, loss and metrics."""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import replace

import torch
from torch import Tensor

from bertcli.distributed import ranks, wrapping
from bertcli.evaluation.evaluate import Scores, evaluation_mode
from bertcli.inference.examples import Runner
from bertcli.tasks.data import Split
from bertcli.tasks.supervised import LabeledBatch, Prediction
from bertcli.terminal import working


def evaluate_task(runner: Runner, split: Split) -> tuple[Scores, list[Prediction]]:
    """Answer all examples without dropout, each rank a part.

    The items of `split` must have targets.
    """
    model, task, examples = runner.model, runner.task, split.examples
    number, parts = (0, 1) if wrapping.is_sharded(model) else (ranks.rank(), ranks.num_ranks())
    first, last = (len(examples) * part // parts for part in (number, number + 1))
    own_items = [
        replace(item, example=item.example - first) for item in split.items if first <= item.example < last
    ]
    loss, answered = torch.zeros((), dtype=torch.float64), 0

    def add_loss(logits: Tensor, batch: LabeledBatch) -> None:
        nonlocal answered
        answered += len(batch.items)
        term = task.term(logits, batch)
        loss.add_(term.loss.double().cpu() * term.unit)

    shown = (
        nullcontext()
        if runner.in_training
        else working(lambda: f"{answered:,} of {len(own_items):,} rows answered")
    )
    with evaluation_mode(model), shown:
        predictions = replace(runner, watch=add_loss).predict(examples[first:last], own_items)
    total = float(loss)
    if parts > 1:
        predictions, total = ranks.gather(predictions), ranks.add_up([total])[0]
    everything = LabeledBatch(tuple(split.items), runner.pad_id)
    joint_loss, predictions = task.join(predictions)
    scores = Scores(
        losses={"": total / task.count(everything) if joint_loss is None else joint_loss},
        accuracies={},
        tokens=everything.num_tokens,
        metrics=task.score(examples, predictions),
    )
    return scores, predictions
