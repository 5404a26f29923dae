"""The epochs that fit a time, on machines whose speed is given."""

from __future__ import annotations

from pathlib import Path

import pytest

from bertcli.advice.init import finetuning as fits
from bertcli.advice.init.finetuning import FinetuningFit, fit_finetuning
from tests.advice.init.files import speed
from tests.finetunes import checked, spam_config, spam_files


@pytest.fixture
def fitted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    spam_files(tmp_path)
    config = checked(spam_config(tmp_path))  # 96 rows, 6 steps of 16

    def fit(step: float, seconds: float) -> FinetuningFit:
        monkeypatch.setattr(fits, "start_seconds", lambda module: 0.0)
        monkeypatch.setattr(fits, "probe", lambda plan, seconds: speed(step, 16 * 20))
        return fit_finetuning(config, seconds)

    return fit


def test_the_time_is_filled(fitted) -> None:
    fit = fitted(10.0, 300)
    assert 4 <= fit.epochs <= 5
    assert fit.seconds == pytest.approx(300, rel=0.15)
    assert not fit.ends_early


def test_a_part_of_an_epoch(fitted) -> None:
    fit = fitted(100.0, 300)
    assert 0.2 < fit.epochs < 0.5
    assert fit.seconds == pytest.approx(300, rel=0.05)
    assert fit.epoch_seconds >= 600


def test_few_rows_end_sooner(fitted) -> None:
    fit = fitted(0.01, 300)
    assert (fit.epochs, fit.ends_early) == (20, True)
    assert fit.seconds < 60
