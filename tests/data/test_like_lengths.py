"""Every item once an epoch, in batches of like length, as a pure function of the step."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from bertcli.data.like_lengths import POOL_BATCHES, LikeLengthOrder


@given(st.lists(st.integers(1, 500), min_size=1, max_size=400), st.integers(1, 40), st.integers(0, 2**63 - 1))
def test_an_epoch_holds_every_item_once(lengths: list[int], batch_size: int, seed: int) -> None:
    order = LikeLengthOrder(np.array(lengths), batch_size, seed)
    for epoch in range(2):
        steps = range(epoch * order.steps_per_epoch, (epoch + 1) * order.steps_per_epoch)
        items = np.concatenate([order[step] for step in steps])
        assert sorted(items) == list(range(len(lengths)))
        assert max(len(order[step]) for step in steps) <= batch_size


def test_a_step_does_not_depend_on_those_before_it() -> None:
    lengths = np.arange(1000) % 97
    one, other = LikeLengthOrder(lengths, 16, seed=3), LikeLengthOrder(lengths, 16, seed=3)
    expected = [one[step].tolist() for step in range(150)]
    assert [other[step].tolist() for step in reversed(range(150))] == expected[::-1]


def test_epochs_and_seeds_differ() -> None:
    lengths = np.ones(100, dtype=np.int64)
    order = LikeLengthOrder(lengths, 10, seed=1)
    assert order[0].tolist() != order[order.steps_per_epoch].tolist()
    assert order[0].tolist() != LikeLengthOrder(lengths, 10, seed=2)[0].tolist()


def test_padding_is_rare() -> None:
    """Lengths spread over 8 to 128: less than a twentieth of the positions is padding."""
    lengths = np.random.default_rng(0).integers(8, 129, size=32 * POOL_BATCHES * 3)
    order = LikeLengthOrder(lengths, 32, seed=0)
    batches = [lengths[order[step]] for step in range(order.steps_per_epoch)]
    positions = sum(len(batch) * batch.max() for batch in batches)
    assert lengths.sum() / positions > 0.95
