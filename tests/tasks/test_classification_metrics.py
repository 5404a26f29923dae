"""Scores of classes, by hand and against scikit-learn's own averages."""

from __future__ import annotations

import tracemalloc
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import f1_score, matthews_corrcoef, precision_recall_fscore_support

from bertcli.inference.evaluate_task import scores_table
from bertcli.tasks.scores import CONFUSIONS, classification_scores, multi_label_scores
from bertcli.training.scores import Scores

NOTHING: Any = 0
"""What the share of nothing is; scikit-learn's types know of words alone."""


def test_two_labels_by_hand():
    scores = classification_scores([1, 1, 1, 0, 0], [1, 1, 0, 1, 0], ["no", "yes"])
    assert scores == {
        "accuracy": pytest.approx(3 / 5),
        "positive_label": "yes",
        "f1": pytest.approx(2 / 3),
        "macro_f1": pytest.approx((2 / 3 + 1 / 2) / 2),
        "macro_precision": pytest.approx((2 / 3 + 1 / 2) / 2),
        "macro_recall": pytest.approx((2 / 3 + 1 / 2) / 2),
        "matthews_correlation": pytest.approx(1 / 6),
        "per_class": {
            "no": {"precision": 0.5, "recall": 0.5, "f1": 0.5, "count": 2},
            "yes": pytest.approx({"precision": 2 / 3, "recall": 2 / 3, "f1": 2 / 3, "count": 3}),
        },
        "confusion_matrix": [[1, 1], [1, 2]],
    }


def test_f1_is_that_of_the_label_that_is_named():
    scores = classification_scores([1, 1, 1, 0, 0], [1, 1, 0, 1, 0], ["no", "yes"], positive="no")
    assert (scores["positive_label"], scores["f1"]) == ("no", scores["per_class"]["no"]["f1"])
    assert scores["f1"] == 0.5


def test_a_class_that_is_never_predicted_counts_as_0_without_a_warning():
    scores = classification_scores([0, 1, 2], [0, 1, 1], ["a", "b", "c", "d"])
    assert not {"f1", "positive_label"} & set(scores)
    assert scores["per_class"]["c"] == {"precision": 0, "recall": 0, "f1": 0, "count": 1}
    assert scores["macro_f1"] == pytest.approx((1 + 2 / 3 + 0) / 3)  # d occurs nowhere
    assert scores["confusion_matrix"] == [[1, 0, 0, 0], [0, 1, 0, 0], [0, 1, 0, 0], [0] * 4]


def test_a_single_class_everywhere():
    scores = classification_scores([1, 1], [1, 1], ["a", "b"])
    assert (scores["accuracy"], scores["f1"], scores["macro_f1"]) == (1, 1, 1)
    assert scores["matthews_correlation"] == 0


def scikit_learns(truth: Any, predicted: Any, **which: Any) -> list[tuple[float, ...]]:
    """Precision, recall, F1 and count of each class."""
    table: Any = precision_recall_fscore_support(truth, predicted, zero_division=NOTHING, **which)
    return [tuple(map(float, column)) for column in zip(*table, strict=True)]


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3)), min_size=1, max_size=20))
def test_the_scores_are_scikit_learns(pairs: list[tuple[int, int]]):
    truth, predicted = [t for t, _ in pairs], [p for _, p in pairs]
    scores = classification_scores(truth, predicted, list("abcd"))
    found = [tuple(scores["per_class"][label].values()) for label in "abcd"]
    assert found == scikit_learns(truth, predicted, labels=range(4))  # to the bit
    assert scores["macro_f1"] == pytest.approx(f1_score(truth, predicted, average="macro"))
    defined = len({*truth, *predicted}) > 1  # else scikit-learn gives 0 too, but warns
    expected = matthews_corrcoef(truth, predicted) if defined else 0.0
    assert scores["matthews_correlation"] == pytest.approx(expected)


def test_of_ten_thousand_labels_the_commonest_confusions_are_given():
    labels = [f"label {number}" for number in range(10_000)]
    truth = [number % 10_000 for number in range(20_000)]
    predicted = [number if number % 3 else 7 for number in truth]
    tracemalloc.start()
    scores = classification_scores(truth, predicted, labels)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 100e6  # a matrix alone has 800 MB
    assert "confusion_matrix" not in scores
    assert len(scores["confusions"]) == CONFUSIONS
    assert scores["confusions"][0] == {"right": "label 0", "given": "label 7", "count": 2}
    table = scores_table(Scores({"": 1.0}, {}, 1, scores))
    assert len(table) < 10_000
    assert "       2  label 0 -> label 7\n" in table
    assert "... and 9,950 more (--json has them all)" in table


def test_many_labels_by_hand():
    truth = [[True, False, False], [True, True, False], [False, False, False]]
    scores = multi_label_scores(truth, [[True, False, False]] * 3, ["a", "b", "c"])
    assert scores["subset_accuracy"] == pytest.approx(1 / 3)
    assert scores["micro_f1"] == pytest.approx(2 / 3)
    assert scores["macro_f1"] == pytest.approx((4 / 5 + 0 + 0) / 3)
    assert scores["per_class"]["a"] == pytest.approx(
        {"precision": 2 / 3, "recall": 1, "f1": 4 / 5, "count": 2}
    )
    assert scores["per_class"]["c"]["count"] == 0


@given(st.lists(st.lists(st.booleans(), min_size=6, max_size=6), min_size=1, max_size=20))
def test_the_scores_of_many_labels_are_scikit_learns(rows: list[list[bool]]):
    truth, predicted = np.array(rows)[:, :3], np.array(rows)[:, 3:]
    scores = multi_label_scores(truth.tolist(), predicted.tolist(), ["a", "b", "c"])
    assert [tuple(each.values()) for each in scores["per_class"].values()] == scikit_learns(truth, predicted)
    assert scores["micro_f1"] == f1_score(truth, predicted, average="micro", zero_division=NOTHING)


def test_a_single_label_column():
    column = [[True], [False]]
    assert multi_label_scores(column, column, ["a"]) == {
        "micro_f1": 1,
        "macro_f1": 1,
        "subset_accuracy": 1,
        "per_class": {"a": {"precision": 1, "recall": 1, "f1": 1, "count": 1}},
    }
    assert multi_label_scores([[False]], [[False]], ["a"])["micro_f1"] == 0
