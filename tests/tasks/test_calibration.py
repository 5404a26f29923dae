"""A temperature, the calibration error and thresholds: of made logits, beside torch and scikit-learn."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from pydantic import ValidationError
from sklearn.metrics import precision_recall_curve

from bertcli.config.task import TaskConfig, TaskSettings
from bertcli.system.errors import UserError
from bertcli.tasks.calibration import (
    LOWEST,
    USUAL,
    Bin,
    Chooser,
    LabeledLogits,
    best_threshold,
    calibration_error,
    chooser_of,
    crossed_error,
    fit,
    fit_temperature,
    kept_settings,
    probabilities,
    reliability,
)
from bertcli.tasks.classification import Classification


def settings(**changes: object) -> TaskSettings:
    return TaskSettings(type="classification", text="text", max_length=16, **changes)  # pyright: ignore[reportArgumentType]


def too_sure(temperature: float, multi_label: bool, rows: int = 4_000) -> LabeledLogits:
    """Rows whose labels are drawn by their probabilities; then their logits are multiplied."""
    random = np.random.default_rng(0)
    logits_NC = random.normal(size=(rows, 3))
    given_NC = probabilities(logits_NC, multi_label)
    if multi_label:
        truths = [np.flatnonzero(row).tolist() for row in random.random(given_NC.shape) < given_NC]
    else:
        truths = [[int(random.choice(3, p=row))] for row in given_NC]
    return LabeledLogits([np.float32(temperature) * row for row in logits_NC], truths, multi_label)


@pytest.mark.parametrize("multi_label", [False, True])
@pytest.mark.parametrize("temperature", [0.5, 3.0])
def test_the_temperature_that_made_logits_too_sure_is_found(multi_label: bool, temperature: float) -> None:
    rows = too_sure(temperature, multi_label)
    found = fit_temperature(rows)
    assert found == pytest.approx(temperature, rel=0.06)
    before = calibration_error(reliability(rows))
    assert calibration_error(reliability(rows, found)) < before / 3
    assert crossed_error(rows) < before / 3


@pytest.mark.parametrize("multi_label", [False, True])
def test_no_other_temperature_has_a_lower_loss(multi_label: bool) -> None:
    rows = too_sure(2.0, multi_label, rows=500)
    logits = torch.from_numpy(np.stack(rows.logits)).double()
    flags = torch.from_numpy(np.concatenate([truth for _, truth in rows.blocks()])).double()
    targets = (500 * flags + (0.5 if multi_label else 1 / 3)) / 501
    loss = F.binary_cross_entropy_with_logits if multi_label else F.cross_entropy
    found = fit_temperature(rows)
    best = float(loss(logits / found, targets))
    assert all(best < float(loss(logits / (found * factor), targets)) for factor in (0.99, 1.01))


def test_rows_without_a_mistake_do_not_make_a_model_certain() -> None:
    sure = LabeledLogits([np.array([2.0, 0.0]), np.array([0.0, 2.0])] * 10, [[0], [1]] * 10, False)
    found = fit_temperature(sure)
    assert LOWEST < found < 1
    assert probabilities(sure.logits[0] / found, False)[0] == pytest.approx(20.5 / 21)


def test_a_block_of_rows_at_a_time_gives_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = too_sure(2.0, False, rows=100)
    found = fit_temperature(rows), reliability(rows)
    monkeypatch.setattr("bertcli.tasks.calibration._AT_ONCE", 10)
    again = fit_temperature(rows), reliability(rows)
    assert again[0] == pytest.approx(found[0])
    assert all(each == pytest.approx(other) for each, other in zip(again[1], found[1], strict=True))
    monkeypatch.setattr("bertcli.tasks.calibration._MOST_LOGITS", 150)
    assert fit_temperature(rows) == fit_temperature(rows[::2])


def test_the_calibration_error_is_the_distance_of_probability_and_share_weighted_by_rows() -> None:
    of_nine = np.log(np.array([0.9, 0.1]))
    of_six = np.log(np.array([0.4, 0.6]))
    rows = LabeledLogits([of_nine, of_nine, of_six, of_six], [[0], [0], [1], [0]], False)
    assert reliability(rows) == [
        pytest.approx(Bin(2, 0.6, 0.5)),
        pytest.approx(Bin(2, 0.9, 1.0)),
    ]
    assert calibration_error(reliability(rows)) == pytest.approx(0.1)
    assert calibration_error([]) == 0


def test_crossed_error_measures_no_row_by_its_own_temperature() -> None:
    """Even rows are as sure as they should be, odd ones ten times: each half is measured by the other's."""
    even, odd = too_sure(1.0, False, rows=400), too_sure(10.0, False, rows=400)
    mixed = LabeledLogits(
        [each for pair in zip(even.logits, odd.logits, strict=True) for each in pair],
        [each for pair in zip(even.truths, odd.truths, strict=True) for each in pair],
        multi_label=False,
    )
    divided = [*even.divided(fit_temperature(odd)), *odd.divided(fit_temperature(even))]
    right = reliability(LabeledLogits(divided, [*even.truths, *odd.truths], multi_label=False))
    assert crossed_error(mixed) == pytest.approx(calibration_error(right))
    assert crossed_error(mixed) > 2 * calibration_error(reliability(mixed, fit_temperature(mixed)))
    assert crossed_error(mixed[:1]) == calibration_error(reliability(mixed[:1]))


SCORES = st.lists(st.tuples(st.integers(0, 20).map(lambda n: n / 20), st.booleans()), min_size=1, max_size=60)


def scored(rows: list[tuple[float, bool]]) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    return np.array([score for score, _ in rows]), np.array([truth for _, truth in rows])


@given(SCORES.filter(lambda rows: any(truth for _, truth in rows)))
def test_the_best_f1_is_that_of_scikit_learns_search(rows: list[tuple[float, bool]]) -> None:
    scores_N, truth_N = scored(rows)
    precision_K, recall_K, _ = precision_recall_curve(truth_N, scores_N)
    best = np.nanmax(2 * precision_K * recall_K / np.maximum(precision_K + recall_K, 1e-12))
    given_N = scores_N >= best_threshold(scores_N, truth_N, None)
    assert 2 * (given_N & truth_N).sum() / (given_N.sum() + truth_N.sum()) == pytest.approx(best)


@given(SCORES.filter(lambda rows: any(truth for _, truth in rows)), st.sampled_from([0.5, 0.9, 1.0]))
def test_a_precision_has_the_highest_recall_of_scikit_learns_search(
    rows: list[tuple[float, bool]], precision: float
) -> None:
    scores_N, truth_N = scored(rows)
    precision_K, recall_K, thresholds_K = precision_recall_curve(truth_N, scores_N)
    good_K = precision_K[: len(thresholds_K)] >= precision
    given_N = scores_N >= best_threshold(scores_N, truth_N, precision)
    right = (given_N & truth_N).sum()
    if good_K.any():
        assert right / truth_N.sum() == pytest.approx(recall_K[: len(thresholds_K)][good_K].max())
        assert right / given_N.sum() >= precision
    else:
        assert right / given_N.sum() == pytest.approx(precision_K[: len(thresholds_K)].max())


def test_a_label_that_no_row_has_keeps_the_usual_threshold() -> None:
    assert best_threshold(np.array([0.1, 0.9]), np.array([False, False]), None) == USUAL


def test_a_threshold_lies_between_two_rows() -> None:
    assert best_threshold(np.array([0.2, 0.6, 0.8]), np.array([False, True, True]), None) == pytest.approx(
        0.4
    )


def test_the_positive_label_is_given_from_its_threshold_on() -> None:
    chooser = Chooser(multi_label=False, thresholds=(0.3,), positive=0)
    some = [np.log([share, 1 - share]) for share in (0.2, 0.31, 0.9)]
    assert [chooser.choose(each) for each in some] == [[1], [0], [0]]
    several = Chooser(multi_label=True, thresholds=(0.3, 0.8), positive=1)
    assert several.choose(np.log([0.4 / 0.6, 0.7 / 0.3])) == [0]


def test_what_dev_decides_is_kept_and_no_longer_fitted() -> None:
    rows, open_ = too_sure(3.0, False), settings(threshold="auto")
    two = LabeledLogits([each[:2] for each in rows.logits], [[min(*each, 1)] for each in rows.truths], False)
    chooser, found = fit(open_, Chooser(False, None, positive=1), two)
    assert chooser.temperature == found["temperature"]
    assert chooser.thresholds == (found["threshold"],)
    kept = kept_settings(open_, found | {"positive_label": "b"})
    assert kept.temperature == found["temperature"]
    divided = LabeledLogits(two.divided(found["temperature"]), two.truths, False)
    _, later = fit(kept, Chooser(False, (found["threshold"],), positive=1), divided)
    assert later.keys() == {"expected_calibration_error", "uncalibrated_error"}
    assert later["uncalibrated_error"] == pytest.approx(found["uncalibrated_error"], abs=1e-6)
    assert kept_settings(settings(), {}).temperature is None
    _, plain = fit(settings(temperature=None), Chooser(False, None, positive=1), two)
    assert plain == {"expected_calibration_error": found["uncalibrated_error"]}


def test_a_number_is_kept_with_the_label_that_it_is_for() -> None:
    for positive, label in ((None, "b"), ("a", "a")):
        task = Classification(settings(threshold=0.3, positive_label=positive), ("a", "b"))
        assert task.kept_settings({}).threshold == {label: 0.3}
    task = Classification(settings(threshold=0.3, multi_label=True), ("a", "b"))
    assert task.kept_settings({}).threshold == 0.3


def test_a_threshold_stays_with_its_label_whatever_label_is_the_positive_one() -> None:
    kept = kept_settings(settings(threshold="auto"), {"threshold": 0.9, "positive_label": "b"})
    assert kept.threshold == {"b": 0.9}
    logits_C = np.log(np.array([0.2, 0.8]))
    for positive in ("a", "b"):
        assert chooser_of(kept, ("a", "b"), positive).choose(logits_C) == [0]


@pytest.mark.parametrize("bad", [math.nan, math.inf])
def test_a_diverged_model_fits_nothing(bad: float) -> None:
    rows = LabeledLogits([np.array([0.0, 1.0]), np.array([bad, 1.0])], [[0], [1]], multi_label=False)
    chooser, found = fit(settings(threshold="auto"), Chooser(False, None, positive=1), rows)
    assert (chooser.thresholds, chooser.temperature) == (None, 1.0)
    assert all(math.isnan(value) for value in found.values())
    assert kept_settings(settings(threshold="auto"), found) == settings(temperature=None)


def test_settings_that_no_dev_data_closed_fit_nothing_on_other_rows() -> None:
    assert settings(threshold="auto").closed == settings(temperature=None)
    assert settings(threshold=0.3, temperature=2.0).closed == settings(threshold=0.3, temperature=2.0)


@pytest.mark.parametrize(
    ("changes", "labels", "message"),
    [
        ({"threshold": 0.7}, ("a", "b", "c"), "is for two labels or multi_label"),
        (
            {"threshold": {"a": 0.7, "x": 0.1}, "multi_label": True},
            ("a", "b"),
            "no such label: x; missing: b",
        ),
    ],
)
def test_thresholds_of_other_labels_are_refused(
    changes: dict[str, object], labels: tuple[str, ...], message: str
) -> None:
    with pytest.raises(UserError, match=message):
        Classification(settings(**changes), labels)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"threshold": {"a": 0.7, "b": 0.2}}, "a number for each label is for multi_label"),
        ({"threshold": "precision=2"}, "threshold"),
        ({"temperature": 2.0}, "a number is what a finished model notes"),
    ],
)
def test_a_config_whose_thresholds_cannot_be_found_is_refused(
    changes: dict[str, object], message: str
) -> None:
    given: dict[str, object] = {"type": "classification", "train": "a.csv", "text": "a", "label": "b"}
    with pytest.raises(ValidationError, match=message):
        TaskConfig(**given | changes)  # pyright: ignore[reportArgumentType]
