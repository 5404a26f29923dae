"""Counts of what is right -> precision, recall and F1."""

from __future__ import annotations


def precision_recall_f1(right: int, predicted: int, true: int) -> dict[str, float | int]:
    """Of `right` among so many `predicted` and `true` ones; `count` are the true. A share of nothing is 0."""
    return {
        "precision": right / max(1, predicted),
        "recall": right / max(1, true),
        "f1": 2 * right / max(1, predicted + true),
        "count": true,
    }
