from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bertcli.training.optimizer import decay_begin, learning_rate


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


def test_stable_decay_falls_in_the_last_steps_alone() -> None:
    rates = [learning_rate(step, 8.0, 2, 20, "stable-decay", 0.2) for step in range(20)]
    assert rates[:17] == [4, *[8] * 16]
    assert rates[16:] == pytest.approx([8, 8 * (1 - 0.25**0.5), 8 * (1 - 0.5**0.5), 8 * (1 - 0.75**0.5)])
    assert decay_begin(20, 0.2) == 16
    late = [learning_rate(step, 8.0, 18, 20, "stable-decay", 0.2) for step in range(20)]
    assert late[17:19] == [8.0, 8.0]  # the rate does not fall before the warm-up has ended


@given(steps=st.integers(2, 500), more=st.integers(0, 500), share=st.floats(0.01, 0.9))
def test_a_longer_run_has_the_same_rates_until_the_decay(steps: int, more: int, share: float) -> None:
    def rates(total: int) -> list[float]:
        until = decay_begin(steps, share)
        return [learning_rate(step, 1.0, 3, total, "stable-decay", share) for step in range(until)]

    assert rates(steps) == rates(steps + more)
    assert 0 <= decay_begin(steps, share) < steps
