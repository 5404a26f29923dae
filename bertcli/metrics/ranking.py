"""Ranks of right candidates -> recall, MRR and NDCG; scored rows of queries -> MRR, NDCG and MAP."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

CUT = 10
"""Candidates that recall, NDCG and `mrr_at_10` look at."""


def ranking_scores(ranks: Sequence[int]) -> dict[str, float]:
    """Means over the queries.

    Args:
        ranks: that of each query's right candidate, from 1.

    Returns:
        recall_at_1, recall_at_10: whether the rank is at most this.
        mrr: 1 / rank.
        ndcg_at_10: 1 / log2(1 + rank) up to rank 10, else 0 (Järvelin and Kekäläinen 2002).
    """
    ranks_N = np.asarray(ranks, np.int64)
    return {
        "recall_at_1": float(np.mean(ranks_N == 1)),
        f"recall_at_{CUT}": float(np.mean(ranks_N <= CUT)),
        "mrr": float(np.mean(1 / ranks_N)),
        f"ndcg_at_{CUT}": float(np.mean(_gains(ranks_N))),
    }


def reranking_scores(
    queries: Sequence[str], labels: Sequence[float], scores: Sequence[float]
) -> dict[str, float]:
    """Means over the queries; `queries`, `labels` and `scores` are those of each row.

    Rows of one query are compared with each other, the highest score first. Of rows with equal scores the
    less relevant come first, so that a constant answer gets a bad score. A row is relevant if its label is
    above 0. Queries without a relevant row, or whose labels are all equal, have no order and are left out.

    Returns:
        mrr_at_10: 1 / rank of a query's first relevant row; 0 if that is not among the first 10.
        ndcg_at_10: the sum of label / log2(1 + rank) over the relevant rows up to rank 10, as a share of the
            largest possible (Järvelin and Kekäläinen 2002, with the labels as gains).
        map: the share of relevant rows down to the place of each relevant row, in the mean over these.

        Empty if no query is left; `ndcg_at_10` alone if all of their rows are relevant.
    """
    rows: dict[str, list[int]] = defaultdict(list)
    for row, query in enumerate(queries):
        rows[query].append(row)
    labels_N, scores_N = np.asarray(labels, np.float64), np.asarray(scores, np.float64)
    ranked = [own[np.lexsort((labels_N[own], -scores_N[own]))] for own in map(np.array, rows.values())]
    found = [labels_N[own].clip(min=0) for own in ranked if labels_N[own].max() > max(0, labels_N[own].min())]
    if not found:
        return {}
    ndcg = {f"ndcg_at_{CUT}": float(np.mean([_discounted(each) for each in found]))}
    if all(each.min() > 0 for each in found):
        return ndcg
    relevant = [1 + np.flatnonzero(each) for each in found]
    return {
        f"mrr_at_{CUT}": float(np.mean([1 / each[0] if each[0] <= CUT else 0 for each in relevant])),
        **ndcg,
        "map": float(np.mean([np.mean(np.arange(1, len(each) + 1) / each) for each in relevant])),
    }


def random_order(candidates: int) -> dict[str, float]:
    """What `ranking_scores` are expected to be for one right candidate at a random rank."""
    return ranking_scores(range(1, candidates + 1))


def _discounted(gains_K: NDArray[np.float64]) -> float:
    """NDCG of one query, whose rows have these gains in the order of their ranks."""
    weights_K = _gains(np.arange(1, len(gains_K) + 1))
    return float((gains_K * weights_K).sum() / (np.sort(gains_K)[::-1] * weights_K).sum())


def _gains(ranks: NDArray[np.int64]) -> NDArray[np.float64]:
    return np.where(ranks <= CUT, 1 / np.log2(1 + ranks), 0.0)
