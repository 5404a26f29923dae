"""Twenty steps of our loop beside a plain one around transformers' model: same weights, same batches."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

transformers = pytest.importorskip("transformers")

from bertcli.batches.order import EpochOrder  # noqa: E402
from bertcli.batches.share import Share  # noqa: E402
from bertcli.families.bert import BERT  # noqa: E402
from bertcli.folders.weights import hf_name  # noqa: E402
from bertcli.model.task_models import TaskModel  # noqa: E402
from bertcli.tasks.supervised import (  # noqa: E402
    LabeledBatch,
    LabeledTask,
    build_task,
)
from bertcli.training.loop import LoopSettings, train  # noqa: E402
from bertcli.training.optimizer import build_optimizer, learning_rate  # noqa: E402
from bertcli.training.scores import StepReport  # noqa: E402
from tests.folders.folders import LABELS, SETTINGS, head_of, saved_task, tiny_tokenizer  # noqa: E402
from tests.labeled_examples import draw_examples  # noqa: E402

STEPS, WARMUP, PEAK = 20, 5, 1e-3
BATCH, MICRO_BATCH = 8, 6
BETAS, EPS, DECAY, CLIP = (0.9, 0.98), 1e-6, 0.1, 1.0
NO_GRADIENT = ("key.bias", "layers.1.feed_forward_norm.bias", "qa_outputs.bias", "classifier.bias")
"""What shifts all that a softmax compares: key biases always, the others in questions and choices. Their
gradient is nothing but rounding, and Adam takes steps of any size by it."""


def our_steps(task: LabeledTask, model: TaskModel, batches: list[LabeledBatch]) -> list[StepReport]:
    settings = LoopSettings(
        seed=1,
        device=torch.device("cpu"),
        precision="fp32",
        max_grad_norm=CLIP,
        rate=lambda step: learning_rate(step, PEAK, WARMUP, STEPS, "linear"),
    )
    optimizer = build_optimizer(model, BETAS, DECAY)
    steps = [batch.micro_batches(Share(MICRO_BATCH)) for batch in batches]
    return list(train(model, task, steps, optimizer, settings, 0))


def plain_steps(model: Any, batches: list[dict[str, Tensor]]) -> list[tuple[float, float]]:
    """Loss and gradient norm of each step of the loop that everyone writes."""
    model.train()
    parameters = list(model.parameters())
    optimizer = torch.optim.AdamW(
        [
            {"params": [p for p in parameters if p.ndim > 1], "weight_decay": DECAY},
            {"params": [p for p in parameters if p.ndim == 1], "weight_decay": 0.0},
        ],
        lr=PEAK,
        betas=BETAS,
        eps=EPS,
    )
    schedule = torch.optim.lr_scheduler.LambdaLR(
        optimizer, lambda step: min((step + 1) / WARMUP, (STEPS - step) / (STEPS - WARMUP))
    )
    steps = []
    for batch in batches:
        loss = model(**batch).loss
        loss.backward()
        norm = torch.nn.utils.clip_grad_norm_(parameters, CLIP)
        optimizer.step()
        optimizer.zero_grad()
        schedule.step()
        steps.append((loss.item(), norm.item()))
    return steps


def for_transformers(batch: LabeledBatch, kind: str, numbers: list[float]) -> dict[str, Tensor]:
    """The same rows and targets as keyword arguments of transformers' model.

    Those of a regression are standardized as a user would, by mean and deviation of all `numbers`.
    """
    rows, targets = batch.rows, [item.target for item in batch.items]
    if kind == "regression":
        targets = [(target - np.mean(numbers)) / np.std(numbers) for target in targets]
        targets = torch.tensor(targets, dtype=torch.float32).tolist()
    mask_BT = torch.ones_like(rows.ids_BT) if rows.mask_BT is None else rows.mask_BT.long()
    inputs = {"input_ids": rows.ids_BT, "token_type_ids": rows.segments_BT, "attention_mask": mask_BT}
    if kind == "tokens":
        labels_BT = torch.full_like(rows.ids_BT, -100)
        for row, item in enumerate(batch.items):
            labels_BT[row, item.layout.positions] = torch.tensor(item.target)
        return inputs | {"labels": labels_BT}
    if kind == "multi-label":
        targets = [[float(label in target) for label in range(len(LABELS[kind]))] for target in targets]
    if kind == "questions":
        starts_B, ends_B = torch.tensor(targets).unbind(1)
        return inputs | {"start_positions": starts_B, "end_positions": ends_B}
    if kind == "choices":
        inputs = {name: value.view(len(targets), 3, -1) for name, value in inputs.items()}
    return inputs | {"labels": torch.tensor(targets)}


@pytest.mark.parametrize("kind", SETTINGS)
def test_every_loss_is_that_of_a_plain_loop(tmp_path: Path, kind: str) -> None:
    ours = saved_task(tmp_path, kind, dropout=0.0, attention_dropout=0.0)
    theirs = getattr(transformers, BERT.classes[head_of(kind)]).from_pretrained(tmp_path)
    examples: list[Any] = draw_examples(kind, 50)
    task = build_task(SETTINGS[kind], LABELS.get(kind, ()))
    task.prepare(examples, print)
    items = task.encode(examples, tiny_tokenizer())
    numbers = [each.label for each in examples] if kind == "regression" else []
    order = EpochOrder(len(items), BATCH, seed=3)
    batches = [LabeledBatch(tuple(items[i] for i in order[step]), pad_id=0) for step in range(STEPS)]

    reports = our_steps(task, ours, batches)
    plain = plain_steps(theirs, [for_transformers(batch, kind, numbers) for batch in batches])

    for report, (loss, norm) in zip(reports, plain, strict=True):
        assert report.loss == pytest.approx(loss, abs=1e-5), f"step {report.step}"
        assert report.grad_norm == pytest.approx(norm, rel=1e-5), f"step {report.step}"
    assert len({report.loss for report in reports}) == STEPS
    their_weights = theirs.state_dict()
    for name, weight in ours.state_dict().items():
        tolerance = 2e-4 if name.endswith(NO_GRADIENT) else 5e-6  # AdamW makes this of a rounding
        torch.testing.assert_close(
            weight, their_weights[hf_name(BERT, name, head_of(kind))], rtol=0, atol=tolerance, msg=name
        )
