from __future__ import annotations

import pytest

from bertcli.engine.schedule import learning_rate


def rates(schedule, steps: int = 10, warmup: int = 4) -> list[float]:
    return [learning_rate(step, 8.0, warmup, steps, schedule) for step in range(steps)]


def test_linear() -> None:
    assert rates("linear") == pytest.approx([2, 4, 6, 8, 8, 8 * 5 / 6, 8 * 4 / 6, 4, 8 * 2 / 6, 8 / 6])


def test_constant() -> None:
    assert rates("constant") == pytest.approx([2, 4, 6, 8, 8, 8, 8, 8, 8, 8])


def test_cosine() -> None:
    assert rates("cosine", steps=8) == pytest.approx([2, 4, 6, 8, 8, 4 + 4 * 0.5**0.5, 4, 4 - 4 * 0.5**0.5])


@pytest.mark.parametrize("schedule", ["linear", "cosine", "constant"])
def test_without_warm_up_the_first_step_has_the_peak(schedule) -> None:
    assert rates(schedule, warmup=0)[0] == 8


def test_warm_up_longer_than_the_run_never_reaches_the_peak() -> None:
    assert rates("linear", steps=3, warmup=100) == pytest.approx([0.08, 0.16, 0.24])
