"""Rows of each step, with and without a ramp."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from bertcli.batches.share import BatchSizes
from bertcli.batches.slots import IS_NEXT
from tests.batches.stores import one_source_slots

SIZES = st.integers(1, 300)


@given(start=SIZES, end=SIZES, ramp_steps=st.integers(2, 200), step=st.integers(0, 400))
def test_a_ramp_goes_from_start_to_end_and_stays(start: int, end: int, ramp_steps: int, step: int) -> None:
    sizes = BatchSizes((start, end), ramp_steps)
    assert (sizes.of(0), sizes.of(ramp_steps - 1), sizes.of(ramp_steps + step)) == (start, end, end)
    assert sizes.before(step) == sum(map(sizes.of, range(step)))
    assert min(start, end) <= sizes.of(step) <= max(start, end) == sizes.largest
    half = start + (end - start) * min(step, ramp_steps - 1) / (ramp_steps - 1)
    assert abs(sizes.of(step) - half) <= 0.5 + 1e-9


@given(size=SIZES, step=st.integers(0, 10**9))
def test_without_a_ramp_all_steps_are_alike(size: int, step: int) -> None:
    sizes = BatchSizes(size, ramp_steps=17)
    assert (sizes.of(step), sizes.before(step)) == (size, size * step)


@given(start=SIZES, end=SIZES)
def test_the_labels_of_a_ramp_stay_half_and_half(start: int, end: int) -> None:
    """And the slots of each label are counted without a gap over all steps."""
    sizes = BatchSizes((start, end), ramp_steps=9)
    turns: dict[int, list[int]] = {0: [], 1: []}
    for step in range(12):
        slots = one_source_slots(5, step, sizes.before(step), batch_size=sizes.of(step))
        is_next = int((slots.labels == IS_NEXT).sum())
        assert abs(2 * is_next - sizes.of(step)) <= 1
        for label in turns:
            turns[label] += sorted(slots.turns[slots.labels == label])
    for seen in turns.values():
        assert seen == list(range(len(seen)))
