"""Texts to numbers."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
import torch

from bertcli.config.task import TaskSettings
from bertcli.model.task_models import AS_THEY_ARE, Standardization, restandardized
from bertcli.system.errors import UserError
from bertcli.tasks.examples import TextExample
from bertcli.tasks.regression import Regression, Value
from bertcli.tasks.supervised import LabeledBatch
from tests.folders.folders import tiny_tokenizer

SETTINGS = TaskSettings(type="regression", text=["a", "b"], max_length=16)
EXAMPLES = [
    TextExample("made.tsv, line 1", {}, ("the cat", "a cat"), 4.5),
    TextExample("made.tsv, line 2", {}, ("the cat", "the night"), 1.0),
]


def test_the_loss_is_the_mean_squared_error() -> None:
    task = Regression(SETTINGS)
    batch = LabeledBatch(tuple(task.encode(EXAMPLES, tiny_tokenizer())), pad_id=0)
    logits_B1 = torch.tensor([[4.0], [3.0]])
    assert float(task.term(logits_B1, batch).loss / task.count(batch)) == pytest.approx((0.25 + 4) / 2)


def test_numbers_are_predicted_and_scored() -> None:
    task = Regression(SETTINGS)
    predictions = [
        task.predict(example, [], [torch.tensor([[4.0 - i]])]) for i, example in enumerate(EXAMPLES)
    ]
    assert predictions[0].as_json() == {"value": 4.0}
    assert task.score(EXAMPLES, predictions)["pearson"] == pytest.approx(1.0)
    assert [task.is_right(e, p) for e, p in zip(EXAMPLES, predictions, strict=True)] == [False, False]
    assert [task.is_right(EXAMPLES[0], Value(number)) for number in (4.0, 4.1, 4.9)] == [False, True, True]
    assert not task.is_right(EXAMPLES[0], Value(-4.4))


def test_a_probability_is_learned_by_binary_cross_entropy() -> None:
    task = Regression(SETTINGS.model_copy(update={"sigmoid": True}))
    examples = [replace(EXAMPLES[0], label=1.0), replace(EXAMPLES[1], label=0.25)]
    batch = LabeledBatch(tuple(task.encode(examples, tiny_tokenizer())), pad_id=0)
    p, q = 1 / (1 + math.exp(-2)), 1 / (1 + math.exp(1))
    loss = -math.log(p) - 0.25 * math.log(q) - 0.75 * math.log(1 - q)
    logits_B1 = torch.tensor([[2.0], [-1.0]])
    assert float(task.term(logits_B1, batch).loss) == pytest.approx(loss)
    predictions = [task.predict(e, [], [row[None]]) for e, row in zip(examples, logits_B1, strict=True)]
    assert [each.value for each in predictions] == pytest.approx([p, q])
    assert task.answer_kind == "sigmoid"


def test_pairs_of_one_first_text_are_ranked() -> None:
    task = Regression(SETTINGS)
    examples = [replace(each, label=float(i)) for i, each in enumerate(EXAMPLES)]
    assert task.score(examples, [Value(2.0), Value(1.0)])["mrr_at_10"] == 0.5
    alone = [replace(each, given=each.given[:1]) for each in examples]
    assert "mrr_at_10" not in task.score(alone, [Value(2.0), Value(1.0)])


def numbered(*numbers: float) -> list[TextExample]:
    return [replace(EXAMPLES[0], label=number) for number in numbers]


@pytest.mark.parametrize(
    ("numbers", "mean", "scale"),
    [
        ((1.0, 3.0), 2.0, 1.0),
        ((0.0, 5.0, 10.0), 5.0, math.sqrt(50 / 3)),
        ((2.0, 2.0, 2.0), 2.0, 1.0),
        ((0.1, 0.1, 0.1), 0.1, 1.0),
        ((-1e-20, 1e-20), 0.0, 1e-20),
        ((0.0, 2e25), 1e25, 1e25),
    ],
)
def test_numbers_are_standardized_and_equal_ones_divide_by_nothing(
    numbers: tuple[float, ...], mean: float, scale: float
) -> None:
    examples = numbered(*numbers)
    task = Regression(SETTINGS)
    task.prepare(examples, print)
    assert task.standardization.mean == pytest.approx(mean)
    assert task.standardization.scale == pytest.approx(scale)
    batch = LabeledBatch(tuple(task.encode(examples, tiny_tokenizer())), pad_id=0)
    right_B1 = torch.tensor([[(number - mean) / scale] for number in numbers])
    term = task.term(right_B1 + 1.0, batch)
    assert float(term.loss) == pytest.approx(len(numbers))
    assert term.unit == pytest.approx(scale**2)
    found = [task.predict(each, [], [row[None]]).value for each, row in zip(examples, right_B1, strict=True)]
    assert found == pytest.approx(list(numbers), rel=1e-6, abs=scale * 1e-6)


def test_numbers_that_fp32_cannot_hold_are_refused_or_named() -> None:
    said: list[str] = []
    with pytest.raises(UserError, match=r"task.label: 1e\+31 is too large"):
        Regression(SETTINGS).prepare(numbered(1.0, 1e31), said.append)
    Regression(SETTINGS).prepare(numbered(1e6, 1e6 + 2), said.append)
    assert said == [
        "warning: the numbers differ by 1 around 1e+06, which is too little for fp32, the precision of a "
        "model's weights; subtract 1e+06 from all of them"
    ]


def test_a_probability_is_not_standardized() -> None:
    task = Regression(SETTINGS.model_copy(update={"sigmoid": True}))
    task.prepare(numbered(0.0, 1.0), print)
    assert task.standardization == AS_THEY_ARE


def test_a_head_stands_for_the_same_numbers_in_every_standardization() -> None:
    head, other = torch.nn.Linear(3, 1), torch.nn.Linear(3, 1)
    weights = {f"classifier.{name}": value.detach() for name, value in head.state_dict().items()}
    before, after = Standardization(2.0, 0.5), Standardization(-3.0, 10.0)
    changed = restandardized(weights, before, after)
    other.load_state_dict({name.removeprefix("classifier."): value for name, value in changed.items()})
    x_BD = torch.randn(4, 3)
    torch.testing.assert_close(other(x_BD) * 10.0 - 3.0, head(x_BD) * 0.5 + 2.0)
    same = restandardized(weights, after, after)
    assert all(same[name] is weights[name] for name in weights)
