"""Right and predicted classes -> accuracy, precision, recall, F1, Matthews correlation, confusion matrix."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from bertcli.metrics.shares import precision_recall_f1

MATRIX_LABELS = 50
"""The most labels with a full confusion matrix: that of 10,000 labels would have 10^8 numbers."""
CONFUSIONS = 100
"""With more labels: the number of most frequent confusions that are given instead."""


def classification_scores(
    truth: Sequence[int], predicted: Sequence[int], labels: Sequence[str], positive: str | None = None
) -> dict[str, Any]:
    """Scores of one class a text, given as numbers of `labels`; at least one text.

    Scores are in 0..1; a share of zero items (the precision of a class never predicted) is 0. The macro
    averages are over the classes that occur in the truth or among the predictions, as in scikit-learn;
    `per_class` and `confusion_matrix` (rows: truth) have all `labels`. With more than `MATRIX_LABELS` labels
    there is `confusions` instead: the most frequent, each as {right, given, count}. With two labels, `f1` is
    that of `positive_label`: `positive`, or by default the second, the positive one of GLUE's tasks (Wang et
    al. 2019, section 3).
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
    scores["matthews_correlation"] = _matthews_correlation(truth, predicted)
    scores["per_class"] = per_class
    if len(labels) <= MATRIX_LABELS:
        scores["confusion_matrix"] = [[pairs[right, given] for given in numbers] for right in numbers]
    else:
        wrong = {pair: count for pair, count in pairs.items() if pair[0] != pair[1]}
        frequent = sorted(wrong.items(), key=lambda each: (-each[1], each[0]))[:CONFUSIONS]
        scores["confusions"] = [
            {"right": labels[right], "given": labels[given], "count": count}
            for (right, given), count in frequent
        ]
    return scores


def _matthews_correlation(truth: Sequence[int], predicted: Sequence[int]) -> float:
    """By counts (Gorodkin 2004, equation 8): scikit-learn's needs a matrix [labels, labels]."""
    true, given, n = Counter(truth), Counter(predicted), len(truth)
    right = sum(map(int.__eq__, truth, predicted))
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
