"""Rows of at most so many tokens: what is dropped, and from where."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bertcli.tasks.framing import frame, longest_first
from bertcli.text.tokenizer import SPECIAL_TOKENS, Tokenizer
from bertcli.text.tokenizer_files import Normalization

TOKENIZER = Tokenizer.from_vocabulary(SPECIAL_TOKENS, Normalization())
CLS, SEP = TOKENIZER.cls_id, TOKENIZER.sep_id


@pytest.mark.parametrize(
    ("a", "b", "max_length", "ids"),
    [
        ([7, 8], None, 4, [CLS, 7, 8, SEP]),
        ([7, 8, 9], None, 4, [CLS, 7, 8, SEP]),
        ([7, 8], [9], 6, [CLS, 7, 8, SEP, 9, SEP]),
        ([7, 8], [9], 5, [CLS, 7, SEP, 9, SEP]),
        ([7], [8, 9], 5, [CLS, 7, SEP, 8, SEP]),
        ([], [8, 9], 4, [CLS, SEP, 8, SEP]),
    ],
)
def test_a_text_and_a_pair(a: list[int], b: list[int] | None, max_length: int, ids: list[int]):
    row = frame(a, b, TOKENIZER, max_length)
    assert row.ids == ids
    assert row.second_starts == (len(ids) if b is None else ids.index(SEP) + 1)


@given(st.integers(0, 40), st.integers(0, 40), st.integers(0, 40))
def test_the_longer_side_loses_a_token_at_a_time(a: int, b: int, room: int):
    kept_a, kept_b = a, b
    while kept_a + kept_b > room:
        if kept_a > kept_b:
            kept_a -= 1
        else:
            kept_b -= 1
    assert longest_first(a, b, room) == (kept_a, kept_b)
