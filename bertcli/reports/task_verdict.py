"""The verdict on a labeled task: whether it beats a baseline that reads no text, and what to change."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from bertcli.config.task import TaskSettings
from bertcli.tasks.scores import random_order
from bertcli.training.evaluate import Scores

_NO_SCORE = "no score can show what was learned"
SURE = 2.0
"""Number of standard errors by which a score must differ from the baseline to be more than noise."""

_ADVICE = (
    "raise training.epochs or change training.learning_rate; start from a model that was pretrained on more "
    "text; add rows; and check that task.text and task.label name the right columns"
)


@dataclass(frozen=True)
class Verdict:
    """The comparison of a model with a baseline that does not read the text.

    Attributes:
        better: True if the model is better by more than noise.
        baseline: metric -> the score of the baseline.
        text: the verdict, a sentence without its period.
        advice: what to change if the model is not better.
    """

    better: bool
    baseline: dict[str, float]
    text: str
    advice: str = ""

    @property
    def line(self) -> str:
        """The verdict and the advice in one line."""
        advice = f". What may help: {self.advice}" if self.advice else ""
        return f"{'verdict' if self.better else 'warning'}: {self.text}{advice}"

    def as_json(self) -> dict[str, Any]:
        """All fields as a dictionary."""
        return asdict(self)


def task_verdict(settings: TaskSettings, examples: Sequence[Any], scores: Scores) -> Verdict:
    """The verdict on the scores of `examples`: one or more, with labels.

    The baselines are: the most frequent label; the best constant set of labels; the mean value; no entity;
    "no answer", if some questions have none; the most frequent place of the right choice, or chance; texts in
    random order.
    """
    verdicts: dict[str, Callable[[Sequence[Any], Any], Verdict]] = {
        "classification": _of_label_sets if settings.multi_label else _of_labels,
        "regression": _of_numbers,
        "token-classification": _of_tags,
        "question-answering": _of_answers,
        "multiple-choice": _of_choices,
        "sentence-embedding": _of_numbers_by_order if settings.label is not None else _of_ranks,
    }
    return verdicts[settings.type](examples, scores.metrics)


def _of_labels(examples: Sequence[Any], metrics: Any) -> Verdict:
    """The verdict on labels. Only rows count that just one of model and baseline has right (McNemar 1947)."""
    n = len(examples)
    label, count = max(Counter(example.label for example in examples).items(), key=lambda each: each[1])
    accuracy, share = metrics["accuracy"], count / n
    baseline = {"accuracy": share}
    if count == n:
        return Verdict(False, baseline, f"every row has the label {label!r}: {_NO_SCORE}")
    right_there = round(metrics["per_class"][label]["recall"] * count)
    model_alone, blind_alone = round(accuracy * n) - right_there, count - right_there
    gain, noise = model_alone - blind_alone, SURE * math.sqrt(model_alone + blind_alone)
    said, blind = f"accuracy {accuracy:.4g}", f"always answering {label!r} ({share:.4g})"
    above = f"{said} is {gain / n:.4g} above {blind}"
    if gain > noise:
        return Verdict(True, baseline, above)
    correlation, needed = metrics["matthews_correlation"], 1.5 * SURE / math.sqrt(n)
    if correlation > needed:
        beside = (
            f"{above}, within the noise of {n:,} rows" if gain > 0 else f"{said} is no better than {blind}"
        )
        return Verdict(
            True,
            baseline,
            f"{beside}, but the answers correlate with the labels: Matthews correlation {correlation:.4g}, "
            "where that gives 0",
        )
    if needed >= 1 and n - count <= SURE * math.sqrt(n - count):
        return _too_few(baseline, said, blind, rows=n)
    rare = "; give rare labels more weight (task.class_weights: balanced)" if share > 0.7 else ""
    return _no_better(baseline, said, blind, noise_of=n if gain > 0 else None, advice=rare)


def _of_label_sets(examples: Sequence[Any], metrics: Any) -> Verdict:
    counts = sorted(Counter(label for example in examples for label in example.label).values(), reverse=True)
    n, total, micro_f1 = len(examples), sum(counts), metrics["micro_f1"]
    if not total:
        return Verdict(False, {"micro_f1": 0.0}, f"no row has a label: {_NO_SCORE}")
    shares = 2 * np.cumsum(counts) / (n * np.arange(1, len(counts) + 1) + total)
    best = int(np.argmax(shares))
    blind = f"always answering the {best + 1} most frequent labels ({shares[best]:.4g})"
    return _of_shares("micro_f1", "micro F1", micro_f1, share=float(shares[best]), blind=blind, rows=n)


def _of_numbers(examples: Sequence[Any], metrics: Any) -> Verdict:
    values = np.array([example.label for example in examples], np.float64)
    n, error, variance = len(examples), metrics["mean_squared_error"], float(values.var())
    baseline = {"mean_squared_error": variance, "pearson": 0.0}
    if variance == 0:
        return Verdict(False, baseline, f"every row has the value {values[0]:g}: {_NO_SCORE}")
    said = f"mean squared error {error:.4g}, pearson {metrics['pearson']:.4g}"
    blind = f"always answering the mean value ({variance:.4g}, 0)"
    needed = SURE / math.sqrt(n)
    if needed >= 1:
        return _too_few(baseline, said, blind, rows=n)
    follows = metrics["pearson"] > needed
    if follows and error < variance:
        return Verdict(True, baseline, f"{said}: {1 - error / variance:.1%} less error than {blind}")
    if follows:
        return Verdict(
            True,
            baseline,
            f"{said}: the order is learned, but not the scale: the error is not below that of {blind}",
            advice="raise training.epochs",
        )
    return _no_better(baseline, said, blind, noise_of=n if metrics["pearson"] > 0 else None)


def _of_tags(examples: Sequence[Any], metrics: Any) -> Verdict:
    f1, baseline = metrics["f1"], {"f1": 0.0}
    if not any(kind["count"] for kind in metrics["per_type"].values()):
        return Verdict(False, baseline, f"no word has an entity's tag: {_NO_SCORE}")
    if f1 > 0:
        return Verdict(True, baseline, f"entity F1 {f1:.4g}, where tagging every word O gives 0")
    return _no_better(
        baseline, "no entity was found correctly: F1 0", "tagging every word O (0)", noise_of=None
    )


def _of_answers(examples: Sequence[Any], metrics: Any) -> Verdict:
    """The verdict on answers to questions; SQuAD's scores are percentages."""
    share = sum(not example.answers for example in examples) / len(examples)
    exact = metrics["exact_match"] / 100
    if share > 0:
        blind = f"always answering that there is no answer ({100 * share:.4g})"
        return _of_shares(
            "exact_match", "exact match", exact, share=share, blind=blind, rows=len(examples), percent=100
        )
    baseline = {"exact_match": 0.0}
    if exact > 0:
        return Verdict(True, baseline, f"exact match {100 * exact:.4g}, where no answer gives 0")
    return _no_better(
        baseline, "no question was answered exactly: exact match 0", "no answer (0)", noise_of=None
    )


def _of_choices(examples: Sequence[Any], metrics: Any) -> Verdict:
    n = len(examples)
    chance = sum(1 / len(example.choices) for example in examples) / n
    place, count = max(Counter(example.label for example in examples).items(), key=lambda each: each[1])
    share = max(chance, count / n)
    what = "choosing by chance" if chance == share else f"always choosing number {place} (counted from 0)"
    return _of_shares(
        "accuracy", "accuracy", metrics["accuracy"], share=share, blind=f"{what} ({share:.4g})", rows=n
    )


def _of_ranks(examples: Sequence[Any], metrics: Any) -> Verdict:
    n, candidates, mrr = len(examples), metrics["candidates"], metrics["mrr"]
    baseline = random_order(candidates)
    if candidates < 2:
        return Verdict(False, baseline, f"there is one text to find alone: {_NO_SCORE}")
    chance, reciprocal = baseline["mrr"], 1 / np.arange(1, candidates + 1)
    said, blind = f"mrr {mrr:.4g}", f"{candidates:,} texts in random order ({chance:.4g})"
    needed = chance + SURE * float(reciprocal.std()) / math.sqrt(n)
    if needed >= 1:
        return _too_few(baseline, said, blind, rows=n)
    if mrr > needed:
        return Verdict(True, baseline, f"{said} is {mrr - chance:.4g} above {blind}")
    return _no_better(baseline, said, blind, noise_of=n if mrr > chance else None)


def _of_numbers_by_order(examples: Sequence[Any], metrics: Any) -> Verdict:
    n, spearman, baseline = len(examples), metrics["spearman"], {"spearman": 0.0, "pearson": 0.0}
    if len({example.score for example in examples}) == 1:
        return Verdict(False, baseline, f"every pair has the score {examples[0].score:g}: {_NO_SCORE}")
    said, blind = f"spearman {spearman:.4g}", "pairs in random order (0)"
    if SURE / math.sqrt(n) >= 1:
        return _too_few(baseline, said, blind, rows=n)
    if spearman > SURE / math.sqrt(n):
        return Verdict(True, baseline, f"{said}, where {blind.removesuffix(' (0)')} give 0")
    return _no_better(baseline, said, blind, noise_of=n if spearman > 0 else None)


def _of_shares(
    metric: str, name: str, score: float, share: float, blind: str, rows: int, percent: int = 1
) -> Verdict:
    baseline = {metric: percent * share}
    said = f"{name} {percent * score:.4g}"
    if share == 1:
        return Verdict(False, baseline, f"{blind} is right in every row: {_NO_SCORE}")
    needed = share + SURE * math.sqrt(share * (1 - share) / rows)
    if needed >= 1:
        return _too_few(baseline, said, blind, rows=rows)
    if score > needed:
        return Verdict(True, baseline, f"{said} is {percent * (score - share):.4g} above {blind}")
    return _no_better(baseline, said, blind, noise_of=rows if score > share else None)


def _too_few(baseline: dict[str, float], said: str, blind: str, rows: int) -> Verdict:
    """The verdict on too few rows: even perfect answers would not surely be better than the baseline."""
    what = "row is" if rows == 1 else "rows are"
    text = f"{said} beside {blind}: {rows:,} {what} too few to tell whether anything was learned"
    return Verdict(False, baseline, text, advice="measure on more rows, with more of the rare answers")


def _no_better(
    baseline: dict[str, float], said: str, blind: str, noise_of: int | None, advice: str = ""
) -> Verdict:
    """The verdict on a useless score. `noise_of`: the number of rows, if it is better only within noise."""
    noise = f", within the noise of {noise_of:,} rows" if noise_of else ""
    text = f"{said}, which is no better than {blind}{noise}: nothing useful was learned"
    return Verdict(False, baseline, text, advice=_ADVICE + advice)
