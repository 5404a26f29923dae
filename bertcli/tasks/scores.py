"""Counts of right items -> precision, recall and F1."""

import math
from collections import Counter, defaultdict
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray


def precision_recall_f1(right: int, predicted: int, true: int) -> dict[str, float | int]:
    """The scores from the numbers of `right`, `predicted` and `true` items; `count` is `true`. A share of
    zero items is 0."""
    return {
        "precision": right / max(1, predicted),
        "recall": right / max(1, true),
        "f1": 2 * right / max(1, predicted + true),
        "count": true,
    }


MATRIX_LABELS = 50
"""The most labels with a full confusion matrix: that of 10,000 labels would have 10^8 numbers."""
CONFUSIONS = 100
"""Number of the most frequent confusions, which replace the matrix if there are more labels."""


def classification_scores(
    truth: Sequence[int], predicted: Sequence[int], labels: Sequence[str], positive: str | None = None
) -> dict[str, Any]:
    """Scores of one class a text. `truth` and `predicted` are numbers of `labels`, for at least one text.

    Scores are in 0..1; a share of zero items (the precision of a class never predicted) is 0. The macro
    averages are over the classes that occur in the truth or among the predictions, as in scikit-learn;
    `per_class` and `confusion_matrix` (rows: truth) have all `labels`. `confusions` replaces the matrix for
    more than `MATRIX_LABELS` labels: the most frequent ones, each as {right, given, count}. Two labels also
    have `f1`, that of `positive_label`: `positive`, or by default the second label, the positive one of
    GLUE's tasks (Wang et al. 2019, section 3).
    """
    numbers = range(len(labels))
    true, given = Counter(truth), Counter(predicted)
    pairs = Counter(zip(truth, predicted, strict=True))
    per_class = {label: precision_recall_f1(pairs[i, i], given[i], true[i]) for i, label in enumerate(labels)}
    occurring = sorted({*truth, *predicted})
    scores: dict[str, Any] = {"accuracy": float(np.mean(np.equal(truth, predicted)))}
    if len(labels) == 2:
        scores["positive_label"] = positive or labels[1]
        scores["f1"] = per_class[scores["positive_label"]]["f1"]
    for name in ("f1", "precision", "recall"):
        scores[f"macro_{name}"] = float(np.mean([per_class[labels[i]][name] for i in occurring]))
    right = sum(pairs[i, i] for i in numbers)
    scores["matthews_correlation"] = _matthews_correlation(true, given, right)
    scores["per_class"] = per_class
    if len(labels) <= MATRIX_LABELS:
        scores["confusion_matrix"] = [[pairs[row, column] for column in numbers] for row in numbers]
    else:
        wrong = {pair: count for pair, count in pairs.items() if pair[0] != pair[1]}
        frequent = sorted(wrong.items(), key=lambda each: (-each[1], each[0]))[:CONFUSIONS]
        scores["confusions"] = [
            {"right": labels[right], "given": labels[given], "count": count}
            for (right, given), count in frequent
        ]
    return scores


def _matthews_correlation(true: Counter[int], given: Counter[int], right: int) -> float:
    """The correlation by counts (Gorodkin 2004, equation 8); scikit-learn needs a matrix of all labels."""
    n = true.total()
    covariance = right * n - sum(count * given[label] for label, count in true.items())
    true_variance = n * n - sum(count * count for count in true.values())
    given_variance = n * n - sum(count * count for count in given.values())
    both = true_variance * given_variance
    return covariance / math.sqrt(both) if both else 0.0


def multi_label_scores(truth: ArrayLike, predicted: ArrayLike, labels: Sequence[str]) -> dict[str, Any]:
    """Scores of any number of labels a text; `truth` and `predicted`: [texts, labels].

    `subset_accuracy` is the share of texts with all labels right; `micro_f1` is over all (text, label) pairs,
    `macro_f1` is the mean over all `labels`. A share of zero items is 0.
    """
    truth_NC, predicted_NC = np.asarray(truth, dtype=np.bool_), np.asarray(predicted, dtype=np.bool_)
    counts_C = [each.sum(0).tolist() for each in (truth_NC & predicted_NC, predicted_NC, truth_NC)]
    columns = [precision_recall_f1(*counts) for counts in zip(*counts_C, strict=True)]
    return {
        "micro_f1": precision_recall_f1(*map(sum, counts_C))["f1"],
        "macro_f1": float(np.mean([column["f1"] for column in columns])),
        "subset_accuracy": float(np.mean((truth_NC == predicted_NC).all(axis=1))),
        "per_class": dict(zip(labels, columns, strict=True)),
    }


def correlation_scores(truth: Sequence[float], predicted: Sequence[float]) -> dict[str, float]:
    """Scores of predicted numbers; `pearson_spearman` is the mean of both, GLUE's metric for STS-B.

    The correlation is undefined if one side is constant. It is 0 then, so that a model with a constant answer
    gets a bad score.
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


CUT = 10
"""Number of first candidates that recall, NDCG and `mrr_at_10` look at."""


def ranking_scores(ranks: Sequence[int]) -> dict[str, float]:
    """Means over the queries.

    Args:
        ranks: the rank of each query's right candidate, from 1.

    Returns:
        recall_at_1, recall_at_10: 1 if the rank is at most this, else 0.
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

    Rows of one query are compared with each other, the highest score first. The less relevant ones of rows
    with equal scores come first, so that a constant answer gets a bad score. A row is relevant if its label
    is above 0. Queries without a relevant row, or whose labels are all equal, have no order and are left out.

    Returns:
        mrr_at_10: 1 / rank of a query's first relevant row; 0 if that is not among the first 10.
        ndcg_at_10: the sum of label / log2(1 + rank) over the relevant rows up to rank 10, as a share of the
            largest possible (Järvelin and Kekäläinen 2002, with the labels as gains).
        map: the precision (share of relevant rows) down to each relevant row, as a mean over these rows.

        The result is empty if no query is left; it is `ndcg_at_10` alone if all of their rows are relevant.
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
    """The expected `ranking_scores` of one right candidate at a random rank."""
    return ranking_scores(range(1, candidates + 1))


def _discounted(gains_K: NDArray[np.float64]) -> float:
    """NDCG of one query, whose rows have these gains in the order of their ranks."""
    weights_K = _gains(np.arange(1, len(gains_K) + 1))
    return float((gains_K * weights_K).sum() / (np.sort(gains_K)[::-1] * weights_K).sum())


def _gains(ranks: NDArray[np.int64]) -> NDArray[np.float64]:
    return np.where(ranks <= CUT, 1 / np.log2(1 + ranks), 0.0)
