"""The order of each query's rows: by hand, and against scikit-learn and a plain loop."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import average_precision_score, ndcg_score

from bertcli.tasks.scores import reranking_scores

LOG3 = math.log2(3)


def test_two_queries_by_hand() -> None:
    """Rows of a: ranks 1 and 3 are relevant; of b: rank 2. The rows of c are all alike."""
    queries = ["a", "b", "a", "c", "a", "b", "c"]
    labels = [1.0, 1.0, 0.0, 1.0, 1.0, 0.0, 1.0]
    scores = [0.9, -2.0, 0.5, 0.1, 0.2, 3.0, 0.7]
    assert reranking_scores(queries, labels, scores) == {
        "mrr_at_10": pytest.approx((1 + 1 / 2) / 2),
        "ndcg_at_10": pytest.approx(((1 + 1 / 2) / (1 + 1 / LOG3) + 1 / LOG3) / 2),
        "map": pytest.approx(((1 + 2 / 3) / 2 + 1 / 2) / 2),
    }


def test_grades_are_gains_and_above_zero_is_relevant() -> None:
    scores = reranking_scores("qqqq", [2.0, 3.0, 0.0, -1.0], [4.0, 3.0, 5.0, 6.0])
    assert scores["ndcg_at_10"] == pytest.approx((2 / 2 + 3 / math.log2(5)) / (3 + 2 / LOG3))
    assert scores["mrr_at_10"] == pytest.approx(1 / 3)
    assert scores["map"] == pytest.approx((1 / 3 + 2 / 4) / 2)


def test_beyond_rank_10_map_alone_sees_a_row() -> None:
    scores = reranking_scores("q" * 12, [0.0] * 11 + [1.0], [-float(rank) for rank in range(12)])
    assert scores == {"mrr_at_10": 0.0, "ndcg_at_10": 0.0, "map": pytest.approx(1 / 12)}


def test_a_constant_answer_puts_the_relevant_rows_last() -> None:
    for labels in ([1.0, 0.0, 0.0], [0.0, 0.0, 1.0]):
        assert reranking_scores("qqq", labels, [0.5] * 3)["mrr_at_10"] == pytest.approx(1 / 3)


@pytest.mark.parametrize("labels", [[1.0, 1.0], [0.0, 0.0], [-1.0, 0.0], [-2.0, -1.0]])
def test_rows_without_an_order_have_no_scores(labels: list[float]) -> None:
    assert reranking_scores("qq", labels, [0.1, 0.2]) == {}
    assert reranking_scores("ab", [1.0, 0.0], [0.1, 0.2]) == {}


def test_where_all_rows_are_relevant_there_is_their_order_alone() -> None:
    assert reranking_scores("qq", [1.0, 5.0], [2.0, 1.0]) == {
        "ndcg_at_10": pytest.approx((1 + 5 / LOG3) / (5 + 1 / LOG3))
    }


ROWS = st.lists(st.tuples(st.sampled_from("abc"), st.sampled_from([0.0, 1.0, 3.0])), min_size=1, max_size=60)


@given(ROWS, st.randoms(use_true_random=False))
def test_the_scores_are_those_of_others(rows: list[tuple[str, float]], random) -> None:
    order = list(range(len(rows)))
    random.shuffle(order)
    queries, labels = zip(*rows, strict=True)
    expected = []
    for query in sorted(set(queries)):
        own = [i for i, each in enumerate(queries) if each == query]
        truth, given = [labels[i] for i in own], [order[i] for i in own]
        if len(set(truth)) == 1:
            continue
        ranked = [label for _, label in sorted(zip(given, truth, strict=True), reverse=True)]
        first = next(rank for rank, label in enumerate(ranked, start=1) if label > 0)
        expected.append(
            (
                1 / first if first <= 10 else 0.0,
                ndcg_score([truth], [given], k=10),
                average_precision_score(np.array(truth) > 0, given),
            )
        )
    scores = reranking_scores(queries, labels, order)
    if not expected:
        assert scores == {}
    elif "map" in scores:
        assert list(scores.values()) == pytest.approx(np.mean(expected, axis=0).tolist())
    else:
        assert scores["ndcg_at_10"] == pytest.approx(np.mean(expected, axis=0)[1])
        assert all(each[2] == pytest.approx(1) for each in expected)
