"""What each score means, in a sentence."""

from __future__ import annotations

_MEANINGS = {
    "loss": "what the training lowers; nats an answer",
    "accuracy": "share of right answers",
    "f1": "harmonic mean of precision and recall",
    "precision": "share of what was found that is right",
    "recall": "share of what is there that was found",
    "macro_f1": "F1 of each label, averaged: rare labels weigh as much as frequent ones",
    "macro_precision": "precision of each label, averaged",
    "macro_recall": "recall of each label, averaged",
    "micro_f1": "F1 over all pairs of a text and a label",
    "subset_accuracy": "share of texts with exactly the right labels",
    "matthews_correlation": "correlation of answers and labels: 0 by chance, 1 if all are right",
    "pearson": "linear correlation with the right values",
    "spearman": "correlation of the order",
    "pearson_spearman": "mean of Pearson and Spearman",
    "mean_squared_error": "mean square of the distance to the right value: lower is better",
    "exact_match": "percentage of answers that are exactly right",
}
_ENDINGS = {
    "_loss": "lower is better",
    "_accuracy": "share of right answers",
    "_replaced": "share of all tokens that the generator replaced",
    "_found": "share of the replaced tokens that the model finds",
    "_threshold": "the best task.null_threshold for it",
}


def meaning_of(key: str) -> str:
    """The meaning of a key of an evaluation; empty where the name is all that is known."""
    endings = (said for ending, said in _ENDINGS.items() if key.endswith(ending))
    return _MEANINGS.get(key) or next(endings, "")
