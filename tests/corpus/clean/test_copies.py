"""Copies and near copies are found, the first one stays, and so do documents that only begin alike."""

from __future__ import annotations

import random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bertcli.corpus.clean.copies import (
    Near,
    Signature,
    Signer,
    candidates,
    first_with,
    near_copies,
    similarity,
)
from bertcli.corpus.clean.rules import words_of
from tests.corpus.builds import short_chapters

THRESHOLD = 0.45


def chapters(number: int) -> list[list[str]]:
    words = [words_of(chapter) for chapter in short_chapters()]
    return [each for each in words if len(each) > 250][:number]


def changed(words: list[str], share: float, seed: int) -> list[str]:
    draw, result = random.Random(seed), list(words)
    others = [word for each in chapters(5) for word in each]
    for place in draw.sample(range(len(words)), round(share * len(words))):
        result[place] = draw.choice(others)
    return result


def near(signatures: list[Signature]) -> dict[int, Near]:
    bands = list(np.array([each.bands for each in signatures]).T)
    found = near_copies(candidates(bands), [each.shingles for each in signatures].__getitem__, THRESHOLD)
    return {each.document: each for each in found}


@pytest.mark.parametrize(("share", "least"), [(0.0, 1.0), (0.03, 1.0), (0.1, 0.98)])
def test_changed_copies_are_found_and_the_first_stays(share: float, least: float) -> None:
    originals, sign = chapters(60), Signer()
    copies = [changed(words, share, seed) for seed, words in enumerate(originals)]
    found = near([sign(words) for words in [*originals, *copies]])
    assert not any(document < len(originals) for document in found)
    right = sum(each.kept == each.document - len(originals) for each in found.values())
    assert right >= least * len(copies)


def test_documents_that_share_a_beginning_are_kept() -> None:
    some, sign = chapters(60), Signer()
    begun = [some[n % 5][:60] + words for n, words in enumerate(some[5:])]
    found = near([sign(words) for words in begun])
    assert len(found) <= 0.01 * len(begun)


def test_the_similarity_is_exactly_that_of_the_sets() -> None:
    one, other = (words_of(text) for text in ("a b c d e f", "x b c d e g"))
    sign = Signer()
    assert similarity(sign(one).shingles, sign(other).shingles) == pytest.approx(2 / 6)  # bcd and cde of six
    assert similarity(sign(one).shingles, sign(one).shingles) == 1.0


@given(st.lists(st.integers(0, 5), max_size=30))
def test_the_first_of_equal_contents_is_named(contents: list[int]) -> None:
    first = first_with(np.array(contents, np.uint64))
    assert first.tolist() == [contents.index(each) for each in contents]


@given(st.lists(st.integers(0, 3), max_size=40))
def test_each_document_of_a_band_meets_the_first_and_the_latest_if_it_has_shingles(values: list[int]) -> None:
    pairs = candidates([np.array(values, np.uint64)]).tolist()
    for later, value in enumerate(values):
        earlier = [n for n in range(later) if values[n] == value != 0]
        met = {pair & 0xFFFFFFFF for pair in pairs if pair >> 32 == later}
        assert met == {*earlier[:1], *earlier[-8:]}


def test_a_document_of_one_word_has_a_signature() -> None:
    sign = Signer()
    one, other, pair = (sign(words) for words in (["one"], ["other"], ["one", "other"]))
    assert len({one.content, other.content, pair.content}) == 3
    assert one.bands.shape == pair.bands.shape


def test_signatures_do_not_depend_on_what_was_signed_before() -> None:
    words = chapters(3)
    used = Signer()
    before = [used(each) for each in words]
    for each, signature in zip(words, before, strict=True):
        fresh = Signer()(each)
        assert fresh.content == signature.content
        assert np.array_equal(fresh.shingles, signature.shingles)
        assert np.array_equal(fresh.bands, signature.bands)
