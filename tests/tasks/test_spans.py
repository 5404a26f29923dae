"""The best spans of windows, against every span weighed one by one."""

from __future__ import annotations

import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from bertcli.tasks.answers import MAX_TOKENS, NUM_BEST, best_spans
from bertcli.tasks.supervised import cut_windows, most_context


@given(st.integers(1, 90), st.integers(2, 50), st.integers(0, 25), st.integers(0, 5))
def test_they_are_those_of_weighing_every_span(length: int, room: int, overlap: int, seed: int):
    windows = cut_windows([1] * length, room, min(overlap, room // 2))
    generator = torch.Generator().manual_seed(seed)
    logits = [torch.randn(len(window), 2, generator=generator) for window in windows]
    owners = most_context(windows)
    every = [
        (float(logits[number][first - window.start, 0] + logits[number][last - window.start, 1]), first, last)
        for number, window in enumerate(windows)
        for first in window
        if owners[first] == number
        for last in range(first, min(first + MAX_TOKENS, window.stop))
    ]
    found = best_spans(windows, logits)
    assert [(span.score, span.first, span.last) for span in found] == sorted(every, reverse=True)[:NUM_BEST]


def peaks(length: int, first: int, last: int) -> Tensor:
    logits_T2 = torch.zeros(length, 2)
    logits_T2[first, 0] = logits_T2[last, 1] = 5.0
    return logits_T2


def test_no_span_is_longer_than_the_longest_answer():
    longest = best_spans([range(40)], [peaks(40, 5, 5 + MAX_TOKENS - 1)])[0]
    assert (longest.first, longest.last, longest.score) == (5, 34, 10.0)
    assert best_spans([range(40)], [peaks(40, 5, 5 + MAX_TOKENS)])[0].score == 5.0


def test_a_span_never_ends_before_it_starts():
    assert all(span.first <= span.last for span in best_spans([range(4)], [peaks(4, 3, 0)]))


def test_an_empty_text_has_none():
    assert best_spans([range(0)], [torch.zeros(0, 2)]) == []
