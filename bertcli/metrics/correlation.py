"""Right and predicted numbers -> Pearson and Spearman correlation and mean squared error."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray


def correlation_scores(truth: Sequence[float], predicted: Sequence[float]) -> dict[str, float]:
    """Scores of predicted numbers; `pearson_spearman` is the mean of both, GLUE's metric for STS-B.

    Where one side is constant there is no correlation to speak of: it is 0 then, so that a model that
    always answers alike is a bad one and not a missing one.
    """
    from scipy.stats import rankdata  # a second to import, which only those who score should wait for

    truth_N, predicted_N = np.asarray(truth, np.float64), np.asarray(predicted, np.float64)
    pearson = _correlation(truth_N, predicted_N)
    spearman = _correlation(rankdata(truth_N), rankdata(predicted_N))
    return {
        "pearson": pearson,
        "spearman": spearman,
        "pearson_spearman": (pearson + spearman) / 2,
        "mean_squared_error": float(np.mean(np.square(truth_N - predicted_N))),
    }


def _correlation(a_N: NDArray[np.float64], b_N: NDArray[np.float64]) -> float:
    varied = np.ptp(a_N) > 0 and np.ptp(b_N) > 0
    return float(np.corrcoef(a_N, b_N)[0, 1]) if varied else 0.0
