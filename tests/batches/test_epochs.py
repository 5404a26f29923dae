"""Every item once an epoch, in fair batches, as a pure function of the step."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bertcli.batches.order import EpochOrder, PairOrder


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


@given(st.lists(st.integers(0, 5), min_size=1, max_size=80), st.integers(1, 40), st.integers(1, 3))
def test_the_items_of_a_step_have_others_of_their_class(
    classes: list[int], batch_size: int, passes: int
) -> None:
    order = PairOrder(classes, batch_size, seed=5, passes=passes)
    read = np.zeros(len(classes), int)
    for number in range(order.steps_per_epoch):
        step = order[number].tolist()
        assert len(step) == len(set(step)) <= max(2, batch_size)
        of_class = [classes[item] for item in step]
        alone = [name for name in of_class if of_class.count(name) == 1]
        assert all(classes.count(name) == 1 for name in alone)
        read[step] += 1
    assert read.min() >= passes


def test_partners_are_drawn_from_all_of_the_class() -> None:
    order = PairOrder([0, 1] * 10, 2, seed=5, passes=100)
    assert len({tuple(order[step]) for step in range(order.steps_per_epoch)}) == 90  # all pairs: 2 * 45
    again = PairOrder([0, 1] * 10, 2, seed=5, passes=100)
    assert again[1234].tolist() == order[1234].tolist()
