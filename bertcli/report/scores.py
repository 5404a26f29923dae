"""The last or best evaluation of a run -> its scores, what each of them means, and its baseline."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from bertcli.config.finetune import FinetuneConfig
from bertcli.config.schema import PretrainConfig
from bertcli.evaluation.best import rank
from bertcli.report.curves import PLACE, shown_name
from bertcli.report.formatting import number
from bertcli.report.references import references_of
from bertcli.report.run_view import Row, RunView
from bertcli.tasks.reference import Reference, perplexity
from bertcli.tasks.registry import build_task

_MEANINGS = {
    "loss": "what the training lowers; nats an answer",
    "accuracy": "share of right answers",
    "kl_loss": "distance from the teacher's words: lower is better",
    "cosine_loss": "distance from the teacher's hidden states: lower is better",
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
    "mrr": "1 / rank of an anchor's positive among all texts, averaged",
    "recall_at_1": "share of the anchors to which no other text is nearer than their positive",
    "recall_at_10": "share of the anchors whose positive is among the 10 nearest texts",
    "mrr_at_10": "1 / rank of the first relevant row of a first text, averaged; 0 beyond rank 10",
    "ndcg_at_10": "how near the first 10 ranks are to the best order: 1 is the best",
    "map": "precision at each relevant row, averaged",
    "null_threshold": 'above it the answer is "no answer"; the model keeps it',
    "exact_match": "percentage of answers that are exactly right",
}
_ENDINGS = {
    "_loss": "lower is better",
    "_accuracy": "share of right answers",
    "_replaced": "share of all tokens that the generator replaced",
    "_found": "share of the replaced tokens that the model finds",
    "_threshold": "the best task.null_threshold for it",
}


@dataclass(frozen=True)
class Score:
    """One figure of an evaluation.

    Attributes:
        key: its name in the log.
        baseline: of an answer that reads no text, or of word frequencies alone; empty: unknown, or none.
    """

    key: str
    name: str
    value: str
    baseline: str = ""
    meaning: str = ""


def metric_of(config: FinetuneConfig) -> str:
    """The metric that selects the model of a fine-tuning run."""
    return config.task.metric or build_task(config.task.settings, ()).metric


def chosen_row(view: RunView) -> Row | None:
    """The evaluation of the model that a run keeps: the best one of a labeled task, else the last."""
    rows = view.split("heldout")
    if not rows or isinstance(view.config, PretrainConfig):
        return rows[-1] if rows else None
    metric = metric_of(view.config)
    return max(rows, key=lambda row: rank(metric, row))


def scores_of(view: RunView) -> list[Score]:
    """The scores of `chosen_row`, of several seeds their means; empty: nothing was held out, or evaluated."""
    rows = [row for part in view.parts if (row := chosen_row(part)) is not None]
    if not rows:
        return []
    row = rows[0] if len(rows) == 1 else _means(rows)
    figures = {key: value for key, value in row.items() if key not in PLACE}
    if isinstance(view.config, PretrainConfig):
        return _of_terms(figures, references_of(view))
    metric = metric_of(view.config)
    return [
        Score(
            key,
            shown_name(key, rows),
            number(figures[key]),
            baseline=number(view.baseline[key]) if key in view.baseline else "",
            meaning=_meaning(key) + ("; the best model is chosen by it" if key == metric else ""),
        )
        for key in sorted(figures, key=lambda key: key != metric)
    ]


def _means(rows: Sequence[Row]) -> Row:
    """Of each key that is a number in all rows."""
    numbers = [key for key in rows[0] if all(isinstance(row.get(key), int | float) for row in rows)]
    return {key: sum(row[key] for row in rows) / len(rows) for key in numbers}


def _meaning(key: str) -> str:
    """Empty where the name is all that is known."""
    endings = (said for ending, said in _ENDINGS.items() if key.endswith(ending))
    return _MEANINGS.get(key) or next(endings, "")


def _of_terms(figures: Row, references: Sequence[Reference]) -> list[Score]:
    known = {each.term: each for each in references}
    with_terms = any(key.endswith("_loss") for key in figures)
    scores = []
    for key, value in figures.items():
        if key == "loss" and with_terms:
            continue
        term, _, what = key.rpartition("_")
        reference = known.get(term)
        chance = None if reference is None else _chance(what, reference, figures.get(f"{term}_replaced"))
        means = _of_loss(value, reference) if reference is not None and what == "loss" else ""
        baseline = "" if chance is None else number(chance)
        scores.append(
            Score(key, shown_name(key), number(value), baseline=baseline, meaning=means or _meaning(key))
        )
    return scores


def _chance(what: str, reference: Reference, replaced: float | None) -> float | None:
    """Of loss or accuracy; `replaced`: the share of the tokens, if the term asks which were replaced."""
    if what not in ("loss", "accuracy"):
        return None
    if replaced is None:
        return reference.chance_loss if what == "loss" else reference.chance_accuracy
    if what == "accuracy":
        return 1 - replaced
    return -sum(share * math.log(share) for share in (replaced, 1 - replaced) if share > 0)


def _of_loss(loss: float | None, reference: Reference) -> str:
    if loss is None or not reference.predicts_words:
        return ""
    gain = reference.chance_loss - loss
    said = f"nats a masked token; perplexity {number(perplexity(loss))}. "
    if gain <= 0:
        return said + "Word frequencies alone are as good: nothing is learned from context."
    return said + (
        f"{number(gain)} nats better than word frequencies alone: each masked token is "
        f"{number(math.exp(gain))} times as likely to be found."
    )
