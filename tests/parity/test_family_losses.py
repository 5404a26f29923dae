"""Some steps of our loop beside a plain one around transformers' model, for each family and task."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

transformers = pytest.importorskip("transformers")

from bertcli.batches.order import EpochOrder  # noqa: E402
from bertcli.folders.task_folder import load_task_folder  # noqa: E402
from bertcli.tasks.supervised import LabeledBatch, build_task  # noqa: E402
from tests.folders.folders import LABELS, SETTINGS, tiny_tokenizer  # noqa: E402
from tests.labeled_examples import draw_examples  # noqa: E402
from tests.parity.families import FIRST, Case, no_dropout, saved_task, their_config  # noqa: E402
from tests.parity.test_families import kinds  # noqa: E402
from tests.parity.test_finetune_losses import BATCH, for_transformers, our_steps, plain_steps  # noqa: E402

STEPS = 6
"""Fewer than in tests.parity.test_finetune_losses: families differ in their layers, not in the loop."""
TASKS = [
    pytest.param(case, kind, id=f"{case.model_type}-{kind}")
    for case in FIRST
    if case.model_type != "bert"  # tests.parity.test_finetune_losses
    for kind in kinds(case)
]


@pytest.mark.parametrize(("case", "kind"), TASKS)
def test_every_loss_and_norm_is_that_of_a_plain_loop(tmp_path: Path, case: Case, kind: str) -> None:
    theirs = saved_task(tmp_path, case, kind, **no_dropout(case))
    ours = load_task_folder(tmp_path).model
    examples: list[Any] = draw_examples(kind, 50)
    task = build_task(SETTINGS[kind], LABELS.get(kind, ()))
    task.prepare(examples, print)
    items = task.encode(examples, tiny_tokenizer())
    numbers = [each.label for each in examples] if kind == "regression" else []
    order = EpochOrder(len(items), BATCH, seed=3)
    pad_id = their_config(case).pad_token_id
    batches = [LabeledBatch(tuple(items[i] for i in order[step]), pad_id) for step in range(STEPS)]
    reports = our_steps(task, ours, batches)
    segments = their_config(case).to_dict().get("type_vocab_size", 0) > 1
    inputs = [for_transformers(batch, kind, numbers) for batch in batches]
    if not segments:
        inputs = [{name: each[name] for name in each if name != "token_type_ids"} for each in inputs]
    plain = plain_steps(theirs, inputs)
    for report, (loss, norm) in zip(reports, plain, strict=True):
        assert report.loss == pytest.approx(loss, abs=1e-4), f"step {report.step}"
        assert report.grad_norm == pytest.approx(norm, rel=1e-4), f"step {report.step}"
    assert len({report.loss for report in reports}) == STEPS
