"""A text and its choices: rows, the loss over as many as there are, and what is chosen."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F

from bertcli.config.task import TaskSettings
from bertcli.tasks.examples import ChoiceExample
from bertcli.tasks.multiple_choice import MultipleChoice
from tests.folders.folders import tiny_tokenizer
from tests.tasks.contract import (
    assert_neighbors_change_nothing,
    assert_splits_change_nothing,
    batch,
    task_model,
)

TOKENIZER = tiny_tokenizer()
TASK = MultipleChoice(
    TaskSettings(type="multiple-choice", text="text", choices=["a", "b"], max_length=16), labels=()
)


def example(a: str, b: str | None, choices: list[str], label: int | None = 0) -> ChoiceExample:
    return ChoiceExample("made.jsonl, line 1", {}, (a,) if b is None else (a, b), tuple(choices), label)


EXAMPLES = [
    example("the cat sat", "it sat on", ["the mat", "a dog"], 1),
    example("dark was the night " * 3, None, ["it ran", "she ran .", "he sat", "the house of the dog"], 3),
    example("a", "b", ["c", "the dog ran on and on", ""], 0),
    example("the dog", None, ["one alone"], 0),
]


def pieces(example: ChoiceExample) -> list[str]:
    (item,) = TASK.encode([example], TOKENIZER)
    return [" ".join(TOKENIZER.token(token) for token in row.ids) for row in item.rows]


def test_a_row_for_each_choice():
    (item,) = TASK.encode(EXAMPLES[:1], TOKENIZER)
    assert pieces(EXAMPLES[0]) == [
        "[CLS] the cat sat [SEP] it sat on the mat [SEP]",
        "[CLS] the cat sat [SEP] it sat on a dog [SEP]",
    ]
    assert [row.second_starts for row in item.rows] == [5, 5]
    assert (item.target, item.dropped) == (1, 0)
    assert pieces(example("the [SEP]", None, ["cat"])) == ["[CLS] the [ sep ] [SEP] cat [SEP]"]


def test_of_a_long_example_the_longer_segment_is_cut_and_the_choice_last():
    long = "the cat sat on the mat ."  # 7 tokens of the 13 that there is room for
    cut_second = example(long, "a dog ran in", ["he sat on it"])
    assert pieces(cut_second) == ["[CLS] the cat sat on the mat [SEP] a dog ran he sat on it [SEP]"]
    cut_first = example(long * 2, None, ["he sat"])
    assert pieces(cut_first) == ["[CLS] the cat sat on the mat . the cat sat on [SEP] he sat [SEP]"]
    cut_choice = example(long, "a", [long + long])
    assert pieces(cut_choice) == ["[CLS] the cat sat on the mat [SEP] the cat sat on the mat . [SEP]"]
    items = TASK.encode([cut_second, cut_first, cut_choice], TOKENIZER)
    assert [item.dropped for item in items] == [2, 3, 9]


def test_any_number_of_choices_has_the_loss_of_each_example_alone():
    items = TASK.encode(EXAMPLES, TOKENIZER)
    logits = torch.randn(10, 1, requires_grad=True)
    term = TASK.term(logits, batch(items))
    groups = logits[:, 0].split([2, 4, 3, 1])
    losses = [F.cross_entropy(g[None], torch.tensor([item.target])) for g, item in zip(groups, items)]  # noqa: B905
    torch.testing.assert_close(term.loss, torch.stack(losses).sum())
    (gradient,) = torch.autograd.grad(term.loss, logits, retain_graph=True)
    torch.testing.assert_close(gradient, torch.autograd.grad(torch.stack(losses).sum(), logits)[0])
    assert TASK.count(batch(items)) == 4


def test_the_likeliest_choice_is_given_by_its_number():
    items = TASK.encode(EXAMPLES, TOKENIZER)
    logits = torch.tensor([[0.0], [1], [2], [0], [0], [0], [0], [0], [5], [0]])
    split = TASK.split_logits(logits, batch(items))
    predictions = [TASK.predict(e, [i], [g]) for e, i, g in zip(EXAMPLES, items, split, strict=True)]
    assert [prediction.choice for prediction in predictions] == [1, 0, 2, 0]
    assert [len(prediction.probabilities) for prediction in predictions] == [2, 4, 3, 1]
    assert predictions[0].as_json() == {
        "choice": 1,
        "probabilities": pytest.approx([1 / (1 + torch.e), torch.e / (1 + torch.e)]),
    }
    assert [TASK.is_right(*each) for each in zip(EXAMPLES, predictions, strict=True)] == [
        *(True, False, False, True)
    ]
    assert TASK.score(EXAMPLES, predictions) == {TASK.metric: 0.5}


def test_an_example_without_label_has_no_target():
    (item,) = TASK.encode([example("the cat", None, ["sat", "ran"], label=None)], TOKENIZER)
    assert item.target is None


def test_neighbors_and_splits_change_nothing():
    model, items = task_model("choices"), TASK.encode(EXAMPLES, TOKENIZER)
    assert_neighbors_change_nothing(TASK, model, items)
    assert_splits_change_nothing(TASK, model, items)
    with torch.no_grad():
        assert model(*batch(items).rows).shape == (10, 1)
