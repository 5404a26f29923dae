"""The verdict on a labeled task: whether it beats a baseline that reads no text, and what to change."""

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

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


def labels_verdict(truth: Sequence[str], metrics: Mapping[str, Any]) -> Verdict:
    """The verdict on labels, beside the most frequent one.

    Only rows count that just one of model and baseline has right (McNemar 1947).
    """
    n = len(truth)
    label, count = Counter(truth).most_common(1)[0]
    accuracy, share = metrics["accuracy"], count / n
    baseline = {"accuracy": share}
    if count == n:
        return no_score(baseline, f"every row has the label {label!r}")
    right_there = round(metrics["per_class"][label]["recall"] * count)
    model_alone, blind_alone = round(accuracy * n) - right_there, count - right_there
    gain, noise = model_alone - blind_alone, SURE * math.sqrt(model_alone + blind_alone)
    said, blind = f"accuracy {accuracy:.4g}", f"always answering {label!r} ({share:.4g})"
    above = f"{said} is {gain / n:.4g} above {blind}"
    if gain > noise:
        return Verdict(True, baseline, above)
    correlation, needed = metrics["matthews_correlation"], 1.5 * SURE / math.sqrt(n)
    if correlation > needed:
        in_noise = f"{above}, within the noise of {n:,} rows"
        beside = in_noise if gain > 0 else f"{said} is no better than {blind}"
        correlates = f"the answers correlate with the labels: Matthews correlation {correlation:.4g}"
        return Verdict(True, baseline, f"{beside}, but {correlates}, where that gives 0")
    if needed >= 1 and n - count <= SURE * math.sqrt(n - count):
        return too_few(baseline, said, blind, rows=n)
    rare = "; give rare labels more weight (task.class_weights: balanced)" if share > 0.7 else ""
    return no_better(baseline, said, blind, noise_of=n if gain > 0 else None, advice=rare)


def label_sets_verdict(truth: Sequence[Sequence[str]], metrics: Mapping[str, Any]) -> Verdict:
    """The verdict on sets of labels, beside the best constant set."""
    counts = sorted(Counter(label for labels in truth for label in labels).values(), reverse=True)
    n, total, micro_f1 = len(truth), sum(counts), metrics["micro_f1"]
    if not total:
        return no_score({"micro_f1": 0.0}, "no row has a label")
    shares = 2 * np.cumsum(counts) / (n * np.arange(1, len(counts) + 1) + total)
    best = int(np.argmax(shares))
    blind = f"always answering the {best + 1} most frequent labels ({shares[best]:.4g})"
    return share_verdict("micro_f1", "micro F1", micro_f1, share=float(shares[best]), blind=blind, rows=n)


def share_verdict(
    metric: str, name: str, score: float, share: float, blind: str, rows: int, percent: int = 1
) -> Verdict:
    """The verdict on a share of right answers, or an F1, beside the one of a blind answer.

    Args:
        metric, name: the key of the score, and its name in words.
        score, share: the scores of the model and of the blind answer, in 0..1.
        blind: the blind answer in words.
        percent: 100 for scores that are shown in percent.
    """
    baseline = {metric: percent * share}
    said = f"{name} {percent * score:.4g}"
    if share == 1:
        return no_score(baseline, f"{blind} is right in every row")
    noise = SURE * math.sqrt(share * (1 - share) / rows)
    better = Verdict(True, baseline, f"{said} is {percent * (score - share):.4g} above {blind}")
    return unless_noise(better, said, blind, score=score, chance=share, noise=noise, rows=rows)


def unless_noise(
    better: Verdict, said: str, blind: str, score: float, chance: float, noise: float, rows: int
) -> Verdict:
    """`better` if the score exceeds the one of a blind answer by more than noise.

    Else the verdict is that of `no_better`, or of `too_few` if no score could exceed it by more.

    Args:
        better: the verdict on a score that exceeds it by more than noise.
        said, blind: the score and the blind answer in words.
        score, chance: the scores of the model and of the blind answer; 1 is the best.
        noise: the difference of these two that chance alone can make.
        rows: the number of rows that they were measured on.
    """
    if chance + noise >= 1:
        return too_few(better.baseline, said, blind, rows=rows)
    if score > chance + noise:
        return better
    return no_better(better.baseline, said, blind, noise_of=rows if score > chance else None)


def no_score(baseline: dict[str, float], why: str) -> Verdict:
    """The verdict on rows by which no model can be measured."""
    return Verdict(False, baseline, f"{why}: no score can show what was learned")


def too_few(baseline: dict[str, float], said: str, blind: str, rows: int) -> Verdict:
    """The verdict on too few rows: even perfect answers would not surely be better than the baseline."""
    what = "row is" if rows == 1 else "rows are"
    text = f"{said} beside {blind}: {rows:,} {what} too few to tell whether anything was learned"
    return Verdict(False, baseline, text, advice="measure on more rows, with more of the rare answers")


def no_better(
    baseline: dict[str, float], said: str, blind: str, noise_of: int | None, advice: str = ""
) -> Verdict:
    """The verdict on a useless score. `noise_of`: the number of rows, if it is better only within noise."""
    noise = f", within the noise of {noise_of:,} rows" if noise_of else ""
    text = f"{said}, which is no better than {blind}{noise}: nothing useful was learned"
    return Verdict(False, baseline, text, advice=_ADVICE + advice)
