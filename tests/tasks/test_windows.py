"""Long texts in windows: every token is read, and the answer of a text is joined from all of its windows."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from bertcli.config.task import TaskSettings, WindowMode
from bertcli.tasks.classification import Classification
from bertcli.tasks.examples import TextExample
from bertcli.tasks.regression import Regression
from bertcli.tasks.sentence_embedding import SentenceEmbedding
from bertcli.tasks.text_task import Windows
from bertcli.tokenizer.frame import Frame
from tests.folders.folders import tiny_tokenizer
from tests.tasks.contract import assert_splits_change_nothing, batch, task_model

FRAME = Frame((1,), (2,), (3,), two_segments=True)
LONG = "the cat sat on the mat and a dog ran in the dark "


def windows(mode: WindowMode = "mean", max_length: int = 8, stride: int = 2, most: int = 99) -> Windows:
    return Windows(mode, max_length, stride, most)


def texts(number: int, label: Any) -> list[TextExample]:
    """Texts of 1, 2, 3 ... windows; every other one is a pair."""
    return [
        TextExample("", {}, (LONG * i, "a dog") if i % 2 else (LONG * i,), label(i)) for i in range(number)
    ]


@given(st.integers(0, 60), st.none() | st.integers(0, 60), st.integers(8, 40), st.integers(0, 30))
def test_every_token_is_in_a_row_and_the_shorter_text_in_every_one(
    a: int, b: int | None, max_length: int, stride: int
) -> None:
    ids_a, ids_b = list(range(100, 100 + a)), None if b is None else list(range(200, 200 + b))
    own = windows(max_length=max_length, stride=stride)
    rows, dropped = own.divide(ids_a, ids_b, FRAME)
    first = FRAME.fit(ids_a, ids_b, max_length)
    assert (list(rows[0].ids), rows[0].second_starts) == (first.ids, first.second_starts)
    assert all(row.length <= max_length for row in rows)
    read = [set(row.ids) for row in rows]
    assert len(set.union(*read) - FRAME.special_ids) + dropped == a + (b or 0)
    half = (max_length - FRAME.cost(b is not None)) // 2
    shorter = [] if ids_b is None else ids_a[:half] if a <= (b or 0) else ids_b[:half]
    assert all(set(shorter) <= ids for ids in read)
    assert dropped == (0 if b is None else max(0, min(a, b) - half))
    for one, other in pairwise(read):
        shared = (one & other) - set(shorter) - FRAME.special_ids
        assert len(shared) == min(stride, (max_length - FRAME.cost(b is not None) - len(shorter)) // 2)


def test_what_is_after_the_last_window_is_cut() -> None:
    ids = list(range(100, 130))
    assert [len(windows(most=most).divide(ids, None, FRAME).rows) for most in (1, 3, 99)] == [1, 3, 7]
    assert windows(most=3).divide(ids, None, FRAME).dropped == 30 - 14
    first = windows("first").divide(ids, None, FRAME)
    assert ([list(row.ids) for row in first.rows], first.dropped) == ([[1, *ids[:6], 3]], 24)


def test_outputs_are_joined_by_text() -> None:
    outputs_RC = torch.tensor([[1.0, 8.0], [3.0, 2.0], [5.0, -4.0], [7.0, 0.0]])
    sizes = [1, 3]
    mean = windows("mean").join(outputs_RC, sizes)
    torch.testing.assert_close(mean, torch.tensor([[1.0, 8.0], [5.0, -2 / 3]]))
    assert windows("max").join(outputs_RC, sizes).tolist() == [[1.0, 8.0], [7.0, 2.0]]
    weighted = windows("mean").join(outputs_RC, sizes, lengths=[9, 8, 8, 4])
    torch.testing.assert_close(weighted, torch.tensor([[1.0, 8.0], [92 / 20, -16 / 20]]))
    assert windows("mean").join(outputs_RC, [1] * 4) is outputs_RC


@pytest.mark.parametrize("mode", ["mean", "max"])
def test_micro_batches_change_neither_loss_nor_gradients(mode: WindowMode) -> None:
    keys = {"text": "text", "max_length": 16, "doc_stride": 4, "windows": mode}
    labels = ("bad", "good")
    one = Classification(TaskSettings(type="classification", **keys), labels)  # pyright: ignore[reportArgumentType]
    items = one.encode(texts(5, lambda i: labels[i % 2]), tiny_tokenizer())
    assert [len(item.rows) for item in items] == [1, 2, 3, 5, 5]
    assert_splits_change_nothing(one, task_model("sequences", 2), items)
    value = Regression(TaskSettings(type="regression", **keys))  # pyright: ignore[reportArgumentType]
    items = value.encode(texts(5, float), tiny_tokenizer())
    assert_splits_change_nothing(value, task_model("sequences"), items)


def test_the_answer_is_that_of_the_joined_logits() -> None:
    settings = TaskSettings(type="classification", text="text", windows="max")
    task, example = Classification(settings, ("a", "b", "c")), TextExample("", {}, ("x",), None)
    logits = [torch.tensor([[0.0, 2.0, 0.0], [1.0, -1.0, 3.0]])]
    answer = task.predict(example, [], logits)
    assert (answer.labels, answer.logits_C.tolist()) == (("c",), [1.0, 2.0, 3.0])
    assert [task.output(example, [], logits, target).row for target in (None, 0, 1)] == [1, 1, 0]


def test_the_vector_of_a_text_counts_each_window_by_its_tokens() -> None:
    settings = TaskSettings(
        type="sentence-embedding", text=["a", "b"], max_length=16, doc_stride=0, windows="mean"
    )
    task = SentenceEmbedding(settings)
    examples = [task.example(texts, "", settings) for texts in (("the cat", LONG * 2), (LONG * 2, "the cat"))]
    item, other = task.encode(examples, tiny_tokenizer())
    assert (item.layout, item.windows, [row.length for row in item.rows]) == ([1, 2], 2, [4, 16, 14])
    vectors_RD = torch.randn(3, 5)
    ((first_D, second_D),) = task.answers(vectors_RD, batch([item]))
    assert torch.equal(first_D, vectors_RD[0])
    torch.testing.assert_close(second_D, (16 * vectors_RD[1] + 14 * vectors_RD[2]) / 30)
    one, turned = (task.predict(examples[0], [each], [first_D]).keys for each in (item, other))
    assert one == turned[::-1]
