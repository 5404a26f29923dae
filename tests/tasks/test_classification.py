"""Texts to labels: what is encoded, what the loss is, what is predicted and how it is scored."""

from __future__ import annotations

import pickle
import tracemalloc
from array import array

import pytest
import torch
import torch.nn.functional as F

from bertcli.config.task import TaskSettings
from bertcli.system.errors import UserError
from bertcli.tasks.classification import Classification
from bertcli.tasks.examples import TextExample
from bertcli.tasks.labels import label_weights
from bertcli.tasks.supervised import LabeledBatch
from tests.folders.folders import tiny_tokenizer

LABELS = ("bad", "fair", "good")


def text(a: str, label: object = None, b: str | None = None) -> TextExample:
    return TextExample("made.tsv, line 1", {}, (a,) if b is None else (a, b), label)  # pyright: ignore[reportArgumentType]


def settings(**changes: object) -> TaskSettings:
    return TaskSettings(type="classification", text="text", max_length=16, **changes)  # pyright: ignore[reportArgumentType]


EXAMPLES = [
    text("the cat sat", "good"),
    text("a dog", "bad", b="ran on"),
    text("the cat sat on the mat " * 4, "fair"),
]


def test_texts_and_pairs_are_framed_and_what_is_cut_off_is_counted() -> None:
    items = Classification(settings(), LABELS).encode(EXAMPLES, tiny_tokenizer())
    assert [len(item.rows[0].ids) for item in items] == [5, 7, 16]
    assert [item.rows[0].second_starts for item in items] == [5, 4, 16]
    assert [item.dropped for item in items] == [0, 0, 26 - 16]
    assert [item.target for item in items] == [2, 0, 1]
    assert [item.example for item in items] == [0, 1, 2]


def test_a_text_without_label_has_no_target() -> None:
    (item,) = Classification(settings(), LABELS).encode([text("the cat")], tiny_tokenizer())
    assert item.target is None


def batch_of(task: Classification, examples: list[TextExample]) -> LabeledBatch:
    return LabeledBatch(tuple(task.encode(examples, tiny_tokenizer())), pad_id=0)


def test_the_loss_is_the_mean_cross_entropy() -> None:
    task = Classification(settings(), LABELS)
    batch, logits_BC = batch_of(task, EXAMPLES), torch.randn(3, 3)
    loss = task.term(logits_BC, batch).loss / task.count(batch)
    torch.testing.assert_close(loss, F.cross_entropy(logits_BC, torch.tensor([2, 0, 1])))


def test_weights_of_the_labels_weigh_the_loss() -> None:
    weights = {"bad": 0.5, "fair": 2.0, "good": 3.0}
    task = Classification(settings(), LABELS)
    task.prepare([], print, weights)
    batch, logits_BC = batch_of(task, EXAMPLES), torch.randn(3, 3)
    loss = task.term(logits_BC, batch).loss / task.count(batch)
    weights_B, targets_B = torch.tensor([3.0, 0.5, 2.0]), torch.tensor([2, 0, 1])
    expected = (weights_B * F.cross_entropy(logits_BC, targets_B, reduction="none")).mean()
    torch.testing.assert_close(loss, expected)


def test_weights_stay_in_a_batch_of_one_label() -> None:
    """As small batches may be; divided by the sum of its weights it would have none."""
    task = Classification(settings(), LABELS)
    task.prepare([], print, {"bad": 0.5, "fair": 2.0, "good": 3.0})
    batch, logits_BC = batch_of(task, [text("a cat", "good"), text("a dog", "good")]), torch.randn(2, 3)
    loss = task.term(logits_BC, batch).loss / task.count(batch)
    torch.testing.assert_close(loss, 3.0 * F.cross_entropy(logits_BC, torch.tensor([2, 2])))


def test_several_labels_have_a_sigmoid_each() -> None:
    task = Classification(settings(multi_label=True), LABELS)
    examples = [text("a cat", ("good", "fair")), text("a dog", ())]
    batch, logits_BC = batch_of(task, examples), torch.tensor([[-1.0, 3.0, 0.5], [-2.0, 0.1, -0.1]])
    expected = F.binary_cross_entropy_with_logits(logits_BC, torch.tensor([[0.0, 1, 1], [0, 0, 0]]))
    torch.testing.assert_close(task.term(logits_BC, batch).loss / task.count(batch), expected)
    predictions = [task.predict(e, [], [row[None]]) for e, row in zip(examples, logits_BC, strict=True)]
    assert [prediction.labels for prediction in predictions] == [("fair", "good"), ("fair",)]
    assert [task.is_right(e, p) for e, p in zip(examples, predictions, strict=True)] == [True, False]
    assert task.score(examples, predictions)["subset_accuracy"] == 0.5
    assert predictions[0].as_json()["label"] == ["fair", "good"]
    assert task.predict(examples[0], [], [torch.tensor([[0.0, -0.0, -1e-6]])]).labels == ("bad", "fair")


def test_pairs_are_ranked_by_the_probability_of_a_single_label() -> None:
    examples = [text("a cat", (), b="ran"), text("a cat", ("fits",), b="sat")]
    for labels, ranked in ((("fits",), True), (("fits", "long"), False)):
        task = Classification(settings(multi_label=True), labels)
        rows = [torch.full((len(labels),), value) for value in (1.5, 0.5)]
        predictions = [task.predict(e, [], [row[None]]) for e, row in zip(examples, rows, strict=True)]
        scores = task.score(examples, predictions)
        assert scores.get("map") == (0.5 if ranked else None)


def test_the_likeliest_label_is_given_with_all_probabilities() -> None:
    task = Classification(settings(), LABELS)
    prediction = task.predict(EXAMPLES[0], [], [torch.tensor([[0.0, 1.0, 2.0]])])
    assert prediction.as_json()["label"] == "good"
    assert sum(prediction.probabilities.values()) == pytest.approx(1.0)
    assert list(prediction.probabilities) == list(LABELS)
    assert task.is_right(EXAMPLES[0], prediction)
    assert not task.is_right(EXAMPLES[1], prediction)
    assert task.score(EXAMPLES, [prediction] * 3)["accuracy"] == pytest.approx(1 / 3)


def test_f1_of_two_labels_is_that_of_the_positive_one() -> None:
    examples = [text("a", "ham"), text("b", "ham"), text("c", "spam")]
    answers = [torch.tensor([1.0, 0.0])] * 3
    for given, f1 in ((None, 0.0), ("spam", 0.0), ("ham", 0.8)):
        task = Classification(settings(positive_label=given), ("ham", "spam"))
        scores = task.score(
            examples, [task.predict(e, [], [a[None]]) for e, a in zip(examples, answers, strict=True)]
        )
        assert (scores["positive_label"], scores["f1"]) == (given or "spam", pytest.approx(f1))


@pytest.mark.parametrize(
    ("labels", "problem"),
    [
        (("ham", "spam"), "'Spam' is not a label; the labels are ham, spam"),
        (LABELS, "is for two labels, not 3; the labels are bad, fair, good"),
    ],
)
def test_a_positive_label_that_is_not_one_of_two_is_refused(labels: tuple[str, ...], problem: str) -> None:
    with pytest.raises(UserError, match=f"^task.positive_label: {problem}$"):
        Classification(settings(positive_label="Spam"), labels)


def test_balanced_weights_make_every_label_count_alike() -> None:
    examples = [text("a", "x")] * 6 + [text("b", "y")] * 2
    assert label_weights("balanced", ("x", "y"), examples) == {"x": 8 / 12, "y": 8 / 4}


def test_weights_of_other_labels_are_refused() -> None:
    with pytest.raises(UserError, match=r"class_weights: .* missing: y; no such label: z"):
        label_weights({"x": 1.0, "z": 2.0}, ("x", "y"), [])


@pytest.mark.parametrize("multi_label", [False, True])
def test_answers_of_many_labels_hold_no_more_than_their_logits(multi_label: bool) -> None:
    """A dictionary of probabilities for each text took 22 GB with 100,000 labels and 3,000 texts."""
    labels = tuple(f"label {number}" for number in range(2000))
    task = Classification(settings(multi_label=multi_label), labels)
    examples = [text("a", (labels[row],) if multi_label else labels[row]) for row in range(100)]
    logits_BC = torch.full((100, 2000), -1.0) + 2 * torch.eye(100, 2000)
    targets = [item.target for item in task.encode(examples, tiny_tokenizer())]
    tracemalloc.start()
    predictions = [task.predict(e, [], [row[None]]) for e, row in zip(examples, logits_BC, strict=True)]
    held, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert held < 200_000  # a dictionary alone has that size
    assert len(pickle.dumps(targets)) < 5000
    assert len(pickle.dumps(predictions[:2])) < 70_000  # for other ranks: the own logits, and the names once
    assert task.score(examples, predictions)["macro_f1"] == pytest.approx(0.05 if multi_label else 1.0)


def test_texts_are_tokenized_some_at_a_time_and_kept_compactly(monkeypatch: pytest.MonkeyPatch) -> None:
    task, tokenizer = Classification(settings(), LABELS), tiny_tokenizer()
    examples = [text(f"the cat {n}", "good", b="a dog" if n % 3 else None) for n in range(10)]
    at_once = task.encode(examples, tokenizer)
    asked: list[int] = []
    encode = tokenizer.encode_batch
    monkeypatch.setattr(
        type(tokenizer), "encode_batch", lambda self, texts: asked.append(len(texts)) or encode(texts)
    )
    monkeypatch.setattr("bertcli.tasks.supervised.AT_ONCE", 2)
    assert task.encode(examples, tokenizer) == at_once
    assert max(asked) == 4
    ids = at_once[0].rows[0].ids
    assert (type(ids), ids.itemsize) == (array, 4)  # pyright: ignore[reportAttributeAccessIssue]
