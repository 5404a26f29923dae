"""Ranking metrics on ranks that can be worked out by hand."""

from __future__ import annotations

import math

import pytest

from bertcli.tasks.scores import random_order, ranking_scores


def test_ranks_that_can_be_worked_out() -> None:
    scores = ranking_scores([1, 2, 20])
    assert scores["recall_at_1"] == pytest.approx(1 / 3)
    assert scores["recall_at_10"] == pytest.approx(2 / 3)
    assert scores["mrr"] == pytest.approx((1 + 1 / 2 + 1 / 20) / 3)
    assert scores["ndcg_at_10"] == pytest.approx((1 + 1 / math.log2(3)) / 3)


def test_a_random_order_is_the_mean_of_all_ranks() -> None:
    assert random_order(4)["mrr"] == pytest.approx((1 + 1 / 2 + 1 / 3 + 1 / 4) / 4)
    assert random_order(20)["recall_at_10"] == pytest.approx(0.5)
