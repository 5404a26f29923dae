"""Counts of right items -> precision, recall and F1."""

from __future__ import annotations


def precision_recall_f1(right: int, predicted: int, true: int) -> dict[str, float | int]:
    """From the numbers of `right`, `predicted` and `true` items; `count` is `true`. A share of zero is 0."""
    return {
        "precision": right / max(1, predicted),
        "recall": right / max(1, true),
        "f1": 2 * right / max(1, predicted + true),
        "count": true,
    }
