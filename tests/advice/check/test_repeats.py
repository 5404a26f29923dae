"""Counting repeats: exact while all is remembered, and within its error beyond."""

from __future__ import annotations

import hashlib

from hypothesis import given, settings
from hypothesis import strategies as st

from bertcli.advice.check.repeats import RepeatCounter


def add(counter: RepeatCounter, *texts: str) -> RepeatCounter:
    for place, text in enumerate(texts):
        digest = hashlib.blake2b(text.encode(), digest_size=8).digest()
        counter.add([int.from_bytes(digest)], [len(text)], place, [text])
    return counter


@settings(max_examples=40)
@given(st.lists(st.text(max_size=2)))
def test_all_that_stood_before_is_counted(texts: list[str]) -> None:
    counter = add(RepeatCounter(), *texts)
    again = [text for number, text in enumerate(texts) if text in texts[:number]]
    assert (counter.times().value, counter.num_bytes().value) == (len(again), sum(map(len, again)))
    assert counter.times().error == 0


def test_the_heaviest_come_first_with_the_place_where_they_stood_first() -> None:
    counter = add(RepeatCounter(), "once", "a", "long line", "a", "a", "long line")
    assert [(each.first, each.again, each.shown, each.times) for each in counter.heaviest(5)] == [
        (2, 5, "'long line'", 1),
        (1, 3, "'a'", 2),
    ]


def test_beyond_the_bound_memory_is_flat_and_the_estimate_within_its_error() -> None:
    counter = RepeatCounter(bound=1000)
    texts = [str(number) for number in range(20_000)]
    add(counter, *texts, *texts[:10_000], *texts[:2_000])
    assert len(counter._first) <= 1000
    times = counter.times()
    assert 0 < times.error < 1500
    assert abs(times.value - 12_000) < 4 * times.error
