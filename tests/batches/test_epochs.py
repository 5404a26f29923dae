"""Every item once an epoch, in fair batches, as a pure function of the step."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bertcli.batches.order import EpochOrder


@given(st.integers(1, 150), st.integers(1, 40), st.integers(0, 2**63 - 1))
def test_an_epoch_holds_every_item_once(size: int, batch_size: int, seed: int) -> None:
    order = EpochOrder(size, batch_size, seed)
    for epoch in range(2):
        numbers = range(epoch * order.steps_per_epoch, (epoch + 1) * order.steps_per_epoch)
        steps = [order[number] for number in numbers]
        assert sorted(np.concatenate(steps)) == list(range(size))
        assert max(map(len, steps)) <= batch_size


def test_a_step_does_not_depend_on_those_before_it() -> None:
    one, other = EpochOrder(1000, 16, seed=3), EpochOrder(1000, 16, seed=3)
    expected = [one[step].tolist() for step in range(150)]
    assert [other[step].tolist() for step in reversed(range(150))] == expected[::-1]


def test_epochs_and_seeds_differ() -> None:
    order = EpochOrder(100, 10, seed=1)
    assert order[0].tolist() != order[order.steps_per_epoch].tolist()
    assert order[0].tolist() != EpochOrder(100, 10, seed=2)[0].tolist()


def test_batches_are_fair_samples_wherever_items_stand() -> None:
    """Items sorted by length, as files often are: the means of batches spread as those of random draws."""
    order = EpochOrder(32_000, 32, seed=0)
    means = [order[step].mean() for step in range(order.steps_per_epoch)]
    assert np.std(means) == pytest.approx(32_000 / np.sqrt(12) / np.sqrt(32), rel=0.1)
