"""The scores of a run, and their baselines: chance, word frequencies, an answer that reads no text."""

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from bertcli.config.schema import PretrainConfig
from bertcli.config.section import ends
from bertcli.folders.config_file import new_architecture
from bertcli.folders.run_layout import ALL_ROWS
from bertcli.objectives.base import Reference, perplexity
from bertcli.objectives.learner import learner_of
from bertcli.objectives.registry import OBJECTIVES
from bertcli.reports.chart import Level
from bertcli.reports.curves import MOST_SERIES, PLACE, shown_name
from bertcli.reports.run_view import Row, RunView
from bertcli.system.errors import UserError
from bertcli.system.terminal import number
from bertcli.tasks.supervised import build_task
from bertcli.training.best import sort_key
from bertcli.training.metrics_log import term_key


def references_of(view: RunView) -> tuple[Reference, ...]:
    """The references of the terms of a pretraining run; empty if its store is missing."""
    config, manifest = view.config, view.manifest
    if not isinstance(config, PretrainConfig) or manifest is None:
        return ()
    objective = OBJECTIVES[config.data.objective]
    fresh = config.model.init_from is None and config.distillation is None
    try:
        sizes = new_architecture(config.model, manifest.vocab_size, objective=objective)
    except UserError:  # the folder has sizes that a new model of the family cannot have
        return ()
    learner, mask_rate = learner_of(objective.name), ends(config.data.mask_rate)[1]
    entropy = manifest.mixed_entropy(config.corpus)
    return learner.references(sizes, entropy, fresh=fresh, mask_rate=mask_rate)


def levels_of(views: Sequence[RunView]) -> Mapping[str, list[Level]]:
    """Key of a log row -> the reference lines of its chart; equal lines of several runs become one."""
    found: dict[tuple[str, str, float], list[tuple[str, Level]]] = defaultdict(list)
    for view in views:
        for key, level in _levels(view):
            found[key, level.label, round(level.value, 2)].append((view.name, level))
    levels: dict[str, list[Level]] = defaultdict(list)
    for (key, _, _), named in found.items():
        name, level = named[0]
        is_alone = len(named) == 1 and len(views) > 1  # it belongs to one run among several
        levels[key].append(Level(level.value, f"{level.label} ({name})") if is_alone else level)
    return levels


def _levels(view: RunView) -> list[tuple[str, Level]]:
    if not isinstance(view.config, PretrainConfig):
        return [(metric, Level(value, "baseline")) for metric, value in view.baseline.items()]
    levels = []
    for each in references_of(view):
        loss, accuracy = (term_key(each.term, what) for what in ("loss", "accuracy"))
        what = "word frequencies alone" if each.predicts_words else "chance"
        levels.append((loss, Level(each.chance_loss, what)))
        if each.first_loss is not None and abs(each.first_loss - each.chance_loss) > 0.05:
            levels.append((loss, Level(each.first_loss, "a fresh model")))
        if each.chance_accuracy is not None:
            levels.append((accuracy, Level(each.chance_accuracy, "chance")))
    return levels


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
    "expected_calibration_error": "mean distance of an answer's probability and the share that is right",
    "uncalibrated_error": "the same without the temperature",
    "temperature": "the logits are divided by it; fitted on the dev data",
    "threshold": "least probability of the positive label; the model keeps it",
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
        key: the name of the figure in the log.
        baseline: the score of an answer that reads no text, or of word frequencies; empty: unknown, or none.
    """

    key: str
    name: str
    value: str
    baseline: str = ""
    meaning: str = ""


def metric_of(view: RunView) -> str:
    """The metric that selects the model of a fine-tuning run; empty for a pretraining run."""
    if isinstance(view.config, PretrainConfig):
        return ""
    return view.config.task.metric or build_task(view.config.task.settings, ()).metric


def chosen_row(view: RunView) -> Row | None:
    """The evaluation of the model that a run keeps: the best one for a labeled task, else the last."""
    rows = view.split("heldout")
    metric = metric_of(view)
    if not metric:
        return rows[-1] if rows else None
    return max(rows, key=lambda row: sort_key(metric, row), default=None)


def scores_of(view: RunView) -> list[Score]:
    """The scores of `chosen_row`, or their means over seeds; empty: nothing was held out or evaluated."""
    rows = [row for part in view.parts if (row := chosen_row(part)) is not None]
    if not rows:
        return []
    row = rows[0] if len(rows) == 1 else _means(rows)
    figures = {key: value for key, value in row.items() if key not in PLACE}
    metric = metric_of(view)
    if not metric:
        return _of_terms(figures, references_of(view))
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
    """The mean of each key that is a number in all rows."""
    numbers = [key for key in rows[0] if all(isinstance(row.get(key), int | float) for row in rows)]
    return {key: sum(row[key] for row in rows) / len(rows) for key in numbers}


def _meaning(key: str) -> str:
    """The meaning of a score for readers; empty: only the name is known."""
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
        chance, meaning = None, _meaning(key)
        if (reference := known.get(term)) and what in ("loss", "accuracy"):
            loss, accuracy = reference.by_chance(figures)
            chance = loss if what == "loss" else accuracy
            if what == "loss":
                meaning = _of_loss(value, reference) or meaning
        baseline = "" if chance is None else number(chance)
        scores.append(Score(key, shown_name(key), number(value), baseline=baseline, meaning=meaning))
    return scores


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


@dataclass(frozen=True)
class PartScore:
    """A score of all seeds or folds.

    Attributes:
        score: name, baseline and meaning.
        values: run -> value; None: not yet known.
        deviation: the standard deviation of the sample; None: there is one run.
        all_rows: the score of all out-of-fold answers; None: there are none, or the runs are of seeds.
    """

    score: Score
    values: Mapping[str, float | None]
    mean: float
    low: float
    high: float
    deviation: float | None
    all_rows: float | None


def part_scores(view: RunView) -> list[PartScore]:
    """The scores of seeds or folds; empty: none was evaluated yet. The mean covers all, listed or not."""
    parts = [each for each in view.several if each.root.name != ALL_ROWS]
    rows = [chosen_row(each) or {} for each in parts]
    names = [each.name for each in parts[:MOST_SERIES]]
    scores = []
    for score in scores_of(view):
        values = [row.get(score.key) for row in rows]
        known = [value for value in values if value is not None and math.isfinite(value)]
        if known:
            mean = float(np.mean(known))
            listed = dict(zip(names, values, strict=False))
            deviation = float(np.std(known, ddof=1)) if len(known) > 1 else None
            scores.append(
                PartScore(
                    score,
                    listed,
                    mean,
                    low=min(known),
                    high=max(known),
                    deviation=deviation,
                    all_rows=view.out_of_fold.get(score.key),
                )
            )
    return scores
