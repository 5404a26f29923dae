"""Ranks of right candidates -> recall, mean reciprocal rank and NDCG."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

CUT = 10
"""Candidates that recall and NDCG look at."""


def ranking_scores(ranks: Sequence[Sequence[int]]) -> dict[str, float]:
    """Means over the queries.

    Args:
        ranks: for each query those of its right candidates, from 1; at least one.

    Returns:
        recall_at_1, recall_at_10: the share of a query's right candidates up to that rank.
        mrr: 1 / rank of its first right candidate.
        ndcg_at_10: the sum of 1 / log2(1 + rank) over its right candidates up to rank 10, as a share of the
            largest possible (Järvelin and Kekäläinen 2002, with gains of 0 and 1).
    """
    found = [np.asarray(each, np.int64) for each in ranks]
    best = [_gains(np.arange(1, len(each) + 1)).sum() for each in found]
    gains = [_gains(each).sum() / most for each, most in zip(found, best, strict=True)]
    return {
        "recall_at_1": float(np.mean([np.mean(each <= 1) for each in found])),
        f"recall_at_{CUT}": float(np.mean([np.mean(each <= CUT) for each in found])),
        "mrr": float(np.mean([1 / each.min() for each in found])),
        f"ndcg_at_{CUT}": float(np.mean(gains)),
    }


def random_order(candidates: int) -> dict[str, float]:
    """What `ranking_scores` are expected to be for one right candidate at a random rank."""
    all_ranks = ranking_scores([[rank] for rank in range(1, candidates + 1)])
    return all_ranks


def _gains(ranks: NDArray[np.int64]) -> NDArray[np.float64]:
    return np.where(ranks <= CUT, 1 / np.log2(1 + ranks), 0.0)
