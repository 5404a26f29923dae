"""Logits and right labels -> a temperature, the calibration error, and the thresholds of labels."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bertcli.config.task import TaskSettings
from bertcli.system.errors import UserError
from bertcli.tasks.labels import listed

USUAL = 0.5
"""The threshold of each label with `multi_label`, if the settings name none."""
BINS = 15
"""Bins of the calibration error (Guo et al. 2017, section 4)."""
LOWEST, HIGHEST = 1 / 20, 20.0
"""The range of temperatures."""
_MOST_LOGITS = 1_000_000
"""Logits that a temperature is fitted on; of more, every so many rows are taken."""
_AT_ONCE = 1_000_000
"""Logits that are converted together, which bounds the memory."""
_HALVINGS = 24


class Bin(NamedTuple):
    """Answers of similar probability: their number, mean probability, and the share of right ones."""

    answers: int
    probability: float
    share: float


@dataclass(frozen=True)
class LabeledLogits:
    """The logits of rows whose labels are known.

    Attributes:
        logits: float [C] of each row.
        truths: the numbers of each row's labels: one, or any number with `multi_label`.
        multi_label: each label has a sigmoid; else a softmax is over all of them.
    """

    logits: Sequence[NDArray[np.floating[Any]]]
    truths: Sequence[Sequence[int]]
    multi_label: bool

    def __getitem__(self, rows: slice) -> LabeledLogits:
        return LabeledLogits(self.logits[rows], self.truths[rows], self.multi_label)

    def blocks(self) -> Iterator[tuple[NDArray[np.float64], NDArray[np.bool_]]]:
        """Logits [K, C] of some rows at a time, and True where a row has the label."""
        size = max(1, _AT_ONCE // max(1, len(self.logits[0]))) if self.logits else 1
        for start in range(0, len(self.logits), size):
            logits_KC = np.asarray(self.logits[start : start + size], np.float64)
            truth_KC = np.zeros(logits_KC.shape, np.bool_)
            for row, labels in enumerate(self.truths[start : start + size]):
                truth_KC[row, list(labels)] = True
            yield logits_KC, truth_KC

    def divided(self, temperature: float) -> list[NDArray[np.floating[Any]]]:
        """The logits of each row at a temperature."""
        return [logits_C / temperature for logits_C in self.logits]


def probabilities(logits: NDArray[np.floating[Any]], multi_label: bool) -> NDArray[np.float64]:
    """The probabilities of labels, float64 [..., C], for logits of the same shape."""
    if multi_label:
        return np.exp(-np.logaddexp(0.0, -logits))
    return np.exp(logits - np.logaddexp.reduce(logits, axis=-1, keepdims=True))


def fit_temperature(rows: LabeledLogits) -> float:
    """The temperature with the lowest cross-entropy (Guo et al. 2017, section 4.2), from 1/20 to 20.

    The cross-entropy is convex in 1 / temperature, and its slope is the sum of (probability - target) *
    logit, for softmax and sigmoid alike. As in Platt scaling (Platt 1999), the targets are a little less than
    certain, as if one more row had every label equally: otherwise logits without a mistake would be divided
    by nearly 0. There must be a row.
    """
    number, labels = len(rows.logits), len(rows.logits[0])
    rows = rows[:: -(-number * labels // _MOST_LOGITS)]
    blocks, number = list(rows.blocks()), len(rows.logits)
    unsure = 0.5 if rows.multi_label else 1 / labels

    def slope(temperature: float) -> float:
        total = 0.0
        for logits_KC, truth_KC in blocks:
            targets_KC = (number * truth_KC + unsure) / (number + 1)
            total += float(
                ((probabilities(logits_KC / temperature, rows.multi_label) - targets_KC) * logits_KC).sum()
            )
        return total

    low, high = np.log(LOWEST), np.log(HIGHEST)
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        low, high = (middle, high) if slope(float(np.exp(middle))) > 0 else (low, middle)
    return float(np.exp((low + high) / 2))


def reliability(rows: LabeledLogits, temperature: float = 1.0) -> list[Bin]:
    """The bins that hold answers, lowest first: `BINS` of equal width (Guo et al. 2017, section 2).

    An answer is the likeliest label of a row; with `multi_label` it is each pair of a row and a label, and
    "right" says that the row has the label.
    """
    edges, sums = np.linspace(0.0, 1.0, BINS + 1), np.zeros((3, BINS))
    for logits_KC, truth_KC in rows.blocks():
        sure, right = probabilities(logits_KC / temperature, rows.multi_label), truth_KC
        if not rows.multi_label:
            best = sure.argmax(axis=1, keepdims=True)
            sure, right = (np.take_along_axis(each, best, axis=1) for each in (sure, right))
        for total, weights in zip(sums, (np.ones_like(sure), sure, right), strict=True):
            total += np.histogram(sure, edges, weights=weights.astype(np.float64))[0]
    return [
        Bin(int(count), float(total / count), float(right / count)) for count, total, right in sums.T if count
    ]


def calibration_error(bins: Sequence[Bin]) -> float:
    """The expected calibration error: the mean distance of probability and share, by the bins' answers."""
    total = sum(each.answers for each in bins)
    return sum(each.answers * abs(each.probability - each.share) for each in bins) / max(1, total)


def crossed_error(rows: LabeledLogits) -> float:
    """The calibration error of rows whose temperature other rows gave.

    Rows of even and of odd number each have the temperature of the others, so that no row is measured by a
    temperature that it was fitted for. A single row keeps its logits.
    """
    if len(rows.logits) < 2:
        return calibration_error(reliability(rows))
    even, odd = rows[::2], rows[1::2]
    scaled = [*even.divided(fit_temperature(odd)), *odd.divided(fit_temperature(even))]
    crossed = LabeledLogits(scaled, [*even.truths, *odd.truths], rows.multi_label)
    return calibration_error(reliability(crossed))


@dataclass(frozen=True)
class Chooser:
    """How the labels of a text follow from its logits.

    Attributes:
        thresholds: the least probability of each label with `multi_label`, else of the positive one of two;
            None: the likeliest label, and 0.5.
        positive: the number of the positive label.
        temperature: the logits are divided by it.
    """

    multi_label: bool
    thresholds: tuple[float, ...] | None
    positive: int
    temperature: float = 1.0

    def choose(self, logits_C: NDArray[np.floating[Any]]) -> list[int]:
        """The numbers of a text's labels."""
        if self.thresholds is None and not self.multi_label:
            return [int(logits_C.argmax())]
        given_C = probabilities(np.asarray(logits_C, np.float64) / self.temperature, self.multi_label)
        if self.multi_label:
            return np.flatnonzero(given_C >= (self.thresholds or USUAL)).tolist()
        assert self.thresholds is not None
        return [self.positive if given_C[self.positive] >= self.thresholds[0] else 1 - self.positive]


def fit_thresholds(rows: LabeledLogits, chooser: Chooser, precision: float | None) -> tuple[float, ...]:
    """The thresholds of a chooser by rows with right answers: one for each label with `multi_label`, else
    that of the positive label; `precision` as in `best_threshold`."""
    blocks = list(rows.blocks())
    logits_NC = np.concatenate([logits_KC for logits_KC, _ in blocks])
    truth_NC = np.concatenate([truth_KC for _, truth_KC in blocks])
    given_NC = probabilities(logits_NC / chooser.temperature, rows.multi_label)
    chosen = range(given_NC.shape[1]) if rows.multi_label else [chooser.positive]
    return tuple(best_threshold(given_NC[:, label], truth_NC[:, label], precision) for label in chosen)


def best_threshold(
    probabilities_N: NDArray[np.float64], truth_N: NDArray[np.bool_], precision: float | None
) -> float:
    """The least probability of an answer with a label, chosen on rows with right answers.

    None: the best F1. Else the highest recall whose precision is at least `precision`; if no threshold has
    it, the one with the highest precision. Of equally good thresholds it is the highest, and it lies halfway
    between two rows, so that another batch changes no answer. It is `USUAL` if no row has the label.
    """
    if not truth_N.any():
        return USUAL
    order = np.argsort(-probabilities_N, kind="stable")
    sorted_N, found_N = probabilities_N[order], truth_N[order].cumsum()
    is_last_N = np.append(sorted_N[1:] < sorted_N[:-1], True)  # rows of equal probability stay together
    given_K, found_K, least_K = np.flatnonzero(is_last_N) + 1, found_N[is_last_N], sorted_N[is_last_N]
    precision_K = found_K / given_K
    if precision is None:
        best = (2 * found_K / (given_K + truth_N.sum())).argmax()
    elif (precision_K >= precision).any():
        best = np.where(precision_K >= precision, found_K, -1).argmax()
    else:
        best = precision_K.argmax()
    below = least_K[best + 1] if best + 1 < len(least_K) else 0.0
    return float((least_K[best] + below) / 2)


def chooser_of(settings: TaskSettings, labels: Sequence[str], positive: str | None) -> Chooser:
    """The chooser of these settings, whose open thresholds are None. `labels` may be empty.

    `positive`: the positive label of two; None: the second one. A threshold that names a label is for it.

    Raises `UserError` for thresholds of other labels, or of one of more than two.
    """
    given, several = settings.threshold, settings.multi_label
    positive = next(iter(given)) if isinstance(given, dict) and not several else positive
    number = labels.index(positive) if positive in labels else len(labels) - 1
    return Chooser(several, _given_thresholds(settings, labels), positive=number)


def _given_thresholds(settings: TaskSettings, labels: Sequence[str]) -> tuple[float, ...] | None:
    given = settings.threshold
    if given is not None and not settings.multi_label and len(labels) > 2:
        raise UserError(
            f"task.threshold: is for two labels or multi_label: true; the labels are {listed(labels)}"
        )
    if given is None or isinstance(given, str) or not labels:
        return None
    if isinstance(given, dict):
        groups = {"no such label": given.keys() - set(labels)}
        if settings.multi_label:
            groups["missing"] = set(labels) - given.keys()
        if problems := [f"{what}: {listed(sorted(names))}" for what, names in groups.items() if names]:
            raise UserError(f"task.threshold: {'; '.join(problems)}. The labels are {listed(labels)}")
        return tuple(given[label] for label in labels if label in given)
    return (given,) * (len(labels) if settings.multi_label else 1)


def fit(settings: TaskSettings, chooser: Chooser, rows: LabeledLogits) -> tuple[Chooser, dict[str, float]]:
    """Fit what `settings` leave open on rows that were not trained on.

    Return how labels are chosen with it, and the numbers of it: the calibration error before
    (`uncalibrated_error`) and after, and what `kept_settings` keeps.
    """
    key = "expected_calibration_error"
    if not all(np.isfinite(logits_C).all() for logits_C in rows.logits):  # the training diverged
        return chooser, {key: math.nan, "uncalibrated_error": math.nan}
    error = calibration_error(reliability(rows))
    if settings.temperature == "auto":
        chooser = replace(chooser, temperature=fit_temperature(rows))
        found = {key: crossed_error(rows), "uncalibrated_error": error, "temperature": chooser.temperature}
    elif settings.temperature is None:
        found = {key: error}
    else:  # the logits of a finished model are divided by it
        before = calibration_error(reliability(rows, 1 / settings.temperature))
        found = {key: error, "uncalibrated_error": before}
    if isinstance(settings.threshold, str):
        wished = settings.threshold.removeprefix("precision=")
        precision = None if wished == settings.threshold else float(wished)
        chooser = replace(chooser, thresholds=fit_thresholds(rows, chooser, precision))
        if chooser.thresholds and not rows.multi_label:
            (found["threshold"],) = chooser.thresholds
    return chooser, found


def kept_settings(settings: TaskSettings, metrics: Mapping[str, Any]) -> TaskSettings:
    """The settings with the temperature and the thresholds of `metrics`; without metrics there are none."""
    update: dict[str, Any] = {}
    if settings.temperature == "auto":
        update["temperature"] = metrics.get("temperature")
    if isinstance(settings.threshold, str):
        rows = metrics.get("per_class", {})
        found = {label: row["threshold"] for label, row in rows.items() if "threshold" in row}
        if "threshold" in metrics:
            found = {metrics["positive_label"]: metrics["threshold"]}
        update["threshold"] = found or None
    return settings.model_copy(update=update)
