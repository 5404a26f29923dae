"""Correlations by hand; constant predictions are worth nothing."""

from __future__ import annotations

import pytest

from bertcli.metrics.correlation import correlation_scores


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
