"""Correlations by hand; constant predictions are worth nothing."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy.stats import rankdata

from bertcli.tasks.scores import correlation_scores


def test_by_hand():
    scores = correlation_scores([1.0, 2.0, 3.0, 4.0], [1.0, 3.0, 2.0, 10.0])
    # deviations -1.5 -0.5 0.5 1.5 and -3 -1 -2 6: 13 / sqrt(5 * 50); ranks 1 3 2 4: 1 - 6 * 2 / 60
    assert scores == {
        "pearson": pytest.approx(13 / 250**0.5),
        "spearman": pytest.approx(0.8),
        "pearson_spearman": pytest.approx((13 / 250**0.5 + 0.8) / 2),
        "mean_squared_error": pytest.approx((0 + 1 + 1 + 36) / 4),
    }


@pytest.mark.parametrize(("truth", "predicted"), [([1, 2], [3, 3]), ([3, 3], [1, 2]), ([1.0], [2.0])])
def test_where_a_side_is_constant_there_is_no_correlation(truth: list[float], predicted: list[float]):
    scores = correlation_scores(truth, predicted)
    assert (scores["pearson"], scores["spearman"], scores["pearson_spearman"]) == (0, 0, 0)


def test_equal_numbers_share_their_rank():
    assert correlation_scores([1, 1, 2], [5, 5, 9])["spearman"] == pytest.approx(1)


@given(st.lists(st.tuples(st.integers(-3, 3), st.floats(-2, 2, width=16)), min_size=2, max_size=20))
def test_ranks_are_scipys(pairs: list[tuple[int, float]]):
    truth, predicted = map(list, zip(*pairs, strict=True))
    assume(len(set(truth)) > 1 and len(set(predicted)) > 1)
    expected = np.corrcoef(rankdata(truth), rankdata(predicted))[0, 1]
    assert correlation_scores(truth, predicted)["spearman"] == expected  # to the bit
