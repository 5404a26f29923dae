"""Places of pieces lose white space, and keep their order."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bertcli.tokenizer.pieces import trim_places


@pytest.mark.parametrize(
    ("text", "offsets", "places"),
    [
        ("a b", [(0, 1), (1, 3)], [(0, 1), (2, 3)]),
        (" \u00a0a\t", [(0, 4)], [(2, 3)]),
        ("a  b", [(0, 1), (1, 2), (2, 4)], [(0, 1), (2, 2), (3, 4)]),
        ("é", [(0, 1), (0, 1)], [(0, 1), (0, 1)]),
        (" ", [(0, 1)], [(1, 1)]),
        ("a ", [(0, 1), (1, 2)], [(0, 1), (2, 2)]),
        ("ab", [(0, 2), (0, 1)], [(0, 2), (0, 2)]),
        ("", [], []),
        ("", [(0, 0)], [(0, 0)]),
    ],
)
def test_white_space_belongs_to_no_piece(text: str, offsets, places):
    found = trim_places(text, np.array(offsets, np.int32).reshape(-1, 2))
    assert (found.dtype, found.shape) == (np.int32, (len(offsets), 2))
    assert found.tolist() == [list(place) for place in places]


@given(st.text("a \t\u00a0é", max_size=12), st.data())
def test_places_ascend_and_hold_all_that_is_no_white_space(text: str, data: st.DataObject):
    cuts = sorted(data.draw(st.lists(st.integers(0, len(text)), max_size=5)))
    offsets = list(zip([0, *cuts], [*cuts, len(text)], strict=True))
    found = trim_places(text, np.array(offsets, np.int32).reshape(-1, 2))
    assert (np.diff(found, axis=0) >= 0).all()
    for (start, end), (first, last) in zip(offsets, found.tolist(), strict=True):
        assert text[first:last] == text[start:end].strip()
