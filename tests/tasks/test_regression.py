"""Texts to numbers."""

from __future__ import annotations

import pytest
import torch

from bertcli.config.finetune import TaskSettings
from bertcli.examples.examples import TextExample
from bertcli.tasks.regression import Regression
from bertcli.tasks.supervised import LabeledBatch
from tests.hf.folders import tiny_tokenizer

SETTINGS = TaskSettings(type="regression", text=["a", "b"], max_length=16)
EXAMPLES = [
    TextExample("made.tsv, line 1", {}, "the cat", "a cat", 4.5),
    TextExample("made.tsv, line 2", {}, "the cat", "the night", 1.0),
]


def test_the_loss_is_the_mean_squared_error() -> None:
    task = Regression(SETTINGS)
    batch = LabeledBatch(tuple(task.encode(EXAMPLES, tiny_tokenizer())), pad_id=0)
    logits_B1 = torch.tensor([[4.0], [3.0]])
    assert float(task.term(logits_B1, batch).loss / task.count(batch)) == pytest.approx((0.25 + 4) / 2)


def test_numbers_are_predicted_and_scored() -> None:
    task = Regression(SETTINGS)
    predictions = [task.predict(example, [], [torch.tensor([4.0 - i])]) for i, example in enumerate(EXAMPLES)]
    assert predictions[0].as_json() == {"value": 4.0}
    assert task.score(EXAMPLES, predictions)["pearson"] == pytest.approx(1.0)
    assert [task.is_right(e, p) for e, p in zip(EXAMPLES, predictions, strict=True)] == [False, False]
