"""Every scheme of tags says the same in BIO."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bertcli.system.errors import UserError
from bertcli.tasks.tags import check_tag, is_tag, to_bio

Entity = tuple[str, int]
"""(type, words); words outside of any entity have the type ""."""
SENTENCES = st.lists(st.tuples(st.sampled_from(["", "PER", "LOC-x"]), st.integers(1, 4)), max_size=8)


def tags(entities: Sequence[Entity], first: str, middle: str, last: str, single: str) -> list[str]:
    found: list[str] = []
    for kind, words in entities:
        letters = [single] if words == 1 else [first, *[middle] * (words - 2), last]
        found += [f"{letter}-{kind}" if kind else "O" for letter in letters]
    return found


def iob1(entities: Sequence[Entity]) -> list[str]:
    """B only where an entity follows on one of its own type."""
    found: list[str] = []
    for i, (kind, words) in enumerate(entities):
        follows = i > 0 and entities[i - 1][0] == kind
        letters = ["B" if follows else "I", *["I"] * (words - 1)]
        found += [f"{letter}-{kind}" if kind else "O" for letter in letters]
    return found


@given(SENTENCES)
def test_every_scheme_says_the_same(entities: list[Entity]):
    bio = tuple(tags(entities, "B", "I", "I", "B"))
    assert to_bio(bio) == bio
    assert to_bio(iob1(entities)) == bio
    assert to_bio(tags(entities, "B", "I", "E", "S")) == bio
    assert to_bio(tags(entities, "B", "I", "L", "U")) == bio


@given(
    st.lists(st.sampled_from(["O", *(f"{letter}{kind}" for letter in "BIESLU" for kind in ("", "-x", "-y"))]))
)
def test_however_ill_formed_the_result_is_well_formed(found: list[str]):
    bio = to_bio(found)
    for before, tag in zip(("O", *bio), bio, strict=False):
        assert tag[0] in "BIO"
        assert tag[0] != "I" or before in (tag, "B" + tag[1:])
    assert [tag[1:] for tag in bio] == [tag[1:] for tag in found]
    assert to_bio(bio) == bio


@pytest.mark.parametrize("tag", ["O", "B", "I", "B-x", "I-x-y", "E-x", "S-x", "L-x", "U-x"])
def test_tags(tag: str):
    assert is_tag(tag)


@pytest.mark.parametrize("tag", ["", "o", "NN", "O-x", "B-", "X-per", "PER", "BI-x", "B_x"])
def test_what_is_no_tag(tag: str):
    with pytest.raises(UserError, match=r"here: .* is not a tag; expected O, or B or I"):
        check_tag(tag, "here")
