"""Ranges over a text: nothing is left out or torn apart, and every token has one window to speak for it."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bertcli.tasks.supervised import cut_windows, most_context


def test_windows_of_single_tokens_share_as_many_as_told():
    assert cut_windows([1] * 10, room=4, overlap=2) == [range(0, 4), range(2, 6), range(4, 8), range(6, 10)]
    assert cut_windows([1] * 5, room=4, overlap=0) == [range(0, 4), range(4, 5)]
    assert cut_windows([1] * 4, room=4, overlap=2) == [range(0, 4)]


@pytest.mark.parametrize("sizes", [[], [0, 0]])
def test_a_text_without_tokens_is_one_empty_window(sizes: list[int]):
    (window,) = windows = cut_windows(sizes, room=4, overlap=2)
    assert len(window) == 0
    assert most_context(windows).tolist() == []


def test_units_are_never_torn_apart():
    # 2 may be shared with 2 or 3 more, but not with the unit of 4
    assert cut_windows([2, 2, 2, 3, 4, 2], room=5, overlap=2) == [
        *(range(0, 4), range(2, 6), range(4, 9)),
        *(range(9, 13), range(13, 15)),
    ]


def test_the_window_with_most_context_speaks_for_a_token():
    # context 0 1 2 2 1 0 in each window of 6
    windows = [range(0, 6), range(3, 9), range(6, 12)]
    assert most_context(windows).tolist() == [0, 0, 0, 0, 0, 1, 1, 1, 2, 2, 2, 2]


@given(st.lists(st.integers(0, 9), max_size=40), st.integers(9, 20), st.integers(0, 10))
def test_every_unit_is_whole_in_some_window_and_every_window_brings_something_new(
    sizes: list[int], room: int, overlap: int
):
    windows = cut_windows(sizes, room, min(overlap, room // 2))
    ends = [sum(sizes[: i + 1]) for i in range(len(sizes))]
    bounds = {0, *ends}
    assert all(len(window) <= room and {window.start, window.stop} <= bounds for window in windows)
    assert (windows[0].start, windows[-1].stop) == (0, sum(sizes))
    for before, after in pairwise(windows):
        assert before.start < after.start <= before.stop < after.stop
        assert before.stop - after.start <= overlap
    for end, size in zip(ends, sizes, strict=True):
        assert any(window.start <= end - size and end <= window.stop for window in windows)
    context = [
        [min(t - window.start, window.stop - 1 - t) if t in window else -1 for window in windows]
        for t in range(sum(sizes))
    ]
    assert most_context(windows).tolist() == [each.index(max(each)) for each in context]
