"""Right and predicted numbers -> Pearson and Spearman correlation and mean squared error."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray


def correlation_scores(truth: Sequence[float], predicted: Sequence[float]) -> dict[str, float]:
    """Scores of predicted numbers; `pearson_spearman` is the mean of both, GLUE's metric for STS-B.

    If one side is constant, the correlation is undefined. It is 0 then, so that a model with a constant
    answer gets a bad score.
    """
    truth_N, predicted_N = np.asarray(truth, np.float64), np.asarray(predicted, np.float64)
    varied = np.ptp(truth_N) > 0 and np.ptp(predicted_N) > 0
    pearson = float(np.corrcoef(truth_N, predicted_N)[0, 1]) if varied else 0.0
    spearman = float(np.corrcoef(mean_ranks(truth_N), mean_ranks(predicted_N))[0, 1]) if varied else 0.0
    return {
        "pearson": pearson,
        "spearman": spearman,
        "pearson_spearman": (pearson + spearman) / 2,
        "mean_squared_error": float(np.mean(np.square(truth_N - predicted_N))),
    }


def mean_ranks(values_N: NDArray[Any]) -> NDArray[np.float64]:
    """Ranks from 1; equal values have the mean of their ranks."""
    _, places_N, counts_K = np.unique(values_N, return_inverse=True, return_counts=True)
    return (counts_K.cumsum() - (counts_K - 1) / 2)[places_N]
