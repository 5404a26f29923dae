from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bertcli.batches.order import draw_bits, make_key, to_below, to_unit

COUNTERS = np.arange(100_000, dtype=np.uint64)


def test_draws_are_splitmix64() -> None:
    """The first outputs of SplitMix64 from seed 1234567, as its authors' reference program prints them."""
    first = draw_bits(np.uint64(1234567), np.arange(1, 6, dtype=np.uint64))
    assert first.tolist() == [
        6457827717110365317,
        3203168211198807973,
        9817491932198370423,
        4593380528125082431,
        16408922859458223821,
    ]


def test_draws_do_not_depend_on_how_they_are_asked_for() -> None:
    key = make_key(42, "test")
    whole = draw_bits(key, COUNTERS)
    assert np.array_equal(whole[37:99], draw_bits(key, COUNTERS[37:99]))


def test_keys_differ_by_seed_and_by_every_name() -> None:
    keys = {
        int(make_key(seed, *names)) for seed in (0, 1) for names in ((), ("a",), ("b",), ("a", 1), ("a", 11))
    }
    assert len(keys) == 10


def test_unit_draws_are_uniform_and_uncorrelated() -> None:
    draws = to_unit(draw_bits(make_key(1, "x"), COUNTERS))
    assert draws.min() >= 0
    assert draws.max() < 1
    counts = np.bincount((draws * 100).astype(int), minlength=100)
    chi_squared = ((counts - 1000) ** 2 / 1000).sum()
    assert 55 < chi_squared < 160  # 99 degrees of freedom, five deviations either way
    assert abs(np.corrcoef(draws[:-1], draws[1:])[0, 1]) < 0.015


@given(limit=st.integers(1, 2**62), key=st.integers(0, 2**64 - 1))
def test_bounded_draws_stay_in_bounds(limit: int, key: int) -> None:
    draws = to_below(draw_bits(np.uint64(key), COUNTERS[:100]), limit)
    assert draws.min() >= 0
    assert draws.max() < limit


@pytest.mark.parametrize("limit", [7, 2**33 + 11])
def test_bounded_draws_are_uniform(limit: int) -> None:
    draws = to_below(draw_bits(make_key(2, "y"), COUNTERS), limit)
    counts = np.bincount(draws * 7 // limit, minlength=7)
    expected = len(COUNTERS) / 7
    assert ((counts - expected) ** 2 / expected).sum() < 30  # 6 degrees of freedom
