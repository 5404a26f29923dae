from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bertcli.batches.slots import IS_NEXT, NOT_NEXT, Spans, checked, walk
from bertcli.system.errors import UserError
from tests.batches.stores import one_source_slots


@given(step=st.integers(0, 10**12), half=st.integers(1, 64), seed=st.integers(0, 2**40))
def test_exactly_half_of_an_even_batch_is_next(step: int, half: int, seed: int) -> None:
    slots = one_source_slots(seed, step, step * 2 * half, batch_size=2 * half)
    assert (slots.labels == IS_NEXT).sum() == half


def test_an_odd_batch_gives_the_one_left_over_to_each_side_in_turn() -> None:
    counts = [
        (one_source_slots(1, step, 7 * step, batch_size=7).labels == IS_NEXT).sum() for step in range(6)
    ]
    assert counts == [3, 4, 3, 4, 3, 4]


@given(batch_size=st.integers(1, 40), first_step=st.integers(0, 10**6))
def test_each_label_counts_its_own_turns_without_gap(batch_size: int, first_step: int) -> None:
    """Over consecutive steps the turns of either label are consecutive numbers: no place is skipped."""
    numbers = range(first_step, first_step + 5)
    steps = [one_source_slots(5, step, step * batch_size, batch_size=batch_size) for step in numbers]
    for label in (IS_NEXT, NOT_NEXT):
        turns = np.sort(np.concatenate([slots.turns[slots.labels == label] for slots in steps]))
        assert (np.diff(turns) == 1).all()


def test_the_first_turns_are_zero() -> None:
    slots = one_source_slots(5, 0, 0, batch_size=8)
    for label in (IS_NEXT, NOT_NEXT):
        assert sorted(slots.turns[slots.labels == label]) == [0, 1, 2, 3]


def test_some_of_the_slots_are_those_of_the_whole() -> None:
    whole, rows = one_source_slots(7, 11, 330, batch_size=30), np.array([29, 3, 4])
    for name in ("numbers", "labels", "turns"):
        assert np.array_equal(getattr(whole.take(rows), name), getattr(whole, name)[rows])


def test_which_slots_are_next_changes_from_step_to_step() -> None:
    labels = np.stack([one_source_slots(0, step, 16 * step, batch_size=16).labels for step in range(500)])
    assert np.abs(labels.mean(axis=0) - 0.5).max() < 0.12  # no slot prefers a label


def test_a_walk_visits_every_place_once_a_round_in_an_order_of_that_round() -> None:
    rounds = walk(np.arange(300), 100, seed=1, name="x").reshape(3, 100)
    assert all(sorted(visited) == list(range(100)) for visited in rounds.tolist())
    assert (rounds[0] != rounds[1]).any()
    assert (walk(np.arange(100), 100, 1, "y") != rounds[0]).any()


@pytest.mark.parametrize(
    "spans",
    [
        ([5], [4], [7], [9]),  # a segment ends before it starts
        ([-1], [2], [2], [3]),
        ([4], [4], [7], [7]),  # no token
        ([0], [6], [7], [9]),  # more tokens than the row has
    ],
)
def test_impossible_spans_are_damage_of_the_store(spans: tuple[list[int], ...]) -> None:
    assert checked(Spans(*map(np.array, ([0], [4], [7], [9]))), np.array([6]))
    with pytest.raises(UserError, match="damaged"):
        checked(Spans(*map(np.array, spans)), np.array([7]))
