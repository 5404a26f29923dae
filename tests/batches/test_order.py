from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bertcli.batches.order import make_key, permute


@given(size=st.integers(1, 2000), seed=st.integers(0, 2**32))
def test_every_index_has_its_own_image(size: int, seed: int) -> None:
    image = permute(np.arange(size), size, make_key(seed))
    assert sorted(image.tolist()) == list(range(size))


@pytest.mark.parametrize("size", [10**12, 2**40 - 1, 2**62])
def test_huge_permutations_answer_any_index(size: int) -> None:
    index = np.array([0, 1, 2, size // 2, size - 2, size - 1])
    image = permute(index, size, make_key(3))
    assert len(set(image.tolist())) == len(index)
    assert image.min() >= 0
    assert image.max() < size


def test_a_key_for_each_index_gives_what_that_key_alone_gives() -> None:
    keys = np.array([make_key(0), make_key(1)])
    both = permute(np.array([5, 5]), 1000, keys)
    assert both.tolist() == [permute(np.array([5]), 1000, key)[0] for key in keys]


def test_no_place_is_favored() -> None:
    """Over many keys, where index 3 of 10 lands, and where 4 lands given 3, is uniform."""
    size, num_keys = 10, 20_000
    keys = np.array([make_key(number) for number in range(num_keys)])
    third = permute(np.full(num_keys, 3), size, keys)
    fourth = permute(np.full(num_keys, 4), size, keys)
    assert not (third == fourth).any()
    counts = np.bincount(third * size + fourth, minlength=100).reshape(10, 10)
    expected = num_keys / 90
    off_diagonal = counts[~np.eye(10, dtype=bool)]
    assert ((off_diagonal - expected) ** 2 / expected).sum() < 89 + 5 * 2 * 89**0.5


def test_neighbors_do_not_stay_neighbors() -> None:
    image = permute(np.arange(100_000), 10**12, make_key(9))
    steps = np.abs(np.diff(image.astype(np.float64))) / 10**12
    assert abs(steps.mean() - 1 / 3) < 0.01  # the mean distance of two uniform points
