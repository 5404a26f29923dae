"""Texts to numbers."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
import torch

from bertcli.config.finetune import TaskSettings
from bertcli.examples.examples import TextExample
from bertcli.tasks.regression import Regression, Value
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


def test_a_probability_is_learned_by_binary_cross_entropy() -> None:
    task = Regression(SETTINGS.model_copy(update={"sigmoid": True}))
    examples = [replace(EXAMPLES[0], label=1.0), replace(EXAMPLES[1], label=0.25)]
    batch = LabeledBatch(tuple(task.encode(examples, tiny_tokenizer())), pad_id=0)
    p, q = 1 / (1 + math.exp(-2)), 1 / (1 + math.exp(1))
    loss = -math.log(p) - 0.25 * math.log(q) - 0.75 * math.log(1 - q)
    logits_B1 = torch.tensor([[2.0], [-1.0]])
    assert float(task.term(logits_B1, batch).loss) == pytest.approx(loss)
    predictions = [task.predict(e, [], [row]) for e, row in zip(examples, logits_B1, strict=True)]
    assert [each.value for each in predictions] == pytest.approx([p, q])
    assert task.answer_kind == "sigmoid"


def test_pairs_of_one_first_text_are_ranked() -> None:
    task = Regression(SETTINGS)
    examples = [replace(each, label=float(i)) for i, each in enumerate(EXAMPLES)]
    assert task.score(examples, [Value(2.0), Value(1.0)])["mrr_at_10"] == 0.5
    alone = [replace(each, text_b=None) for each in examples]
    assert "mrr_at_10" not in task.score(alone, [Value(2.0), Value(1.0)])
