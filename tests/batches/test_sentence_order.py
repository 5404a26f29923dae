"""Sentence order: whole sentences on both sides, and nothing but the text tells the label."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bertcli.batches.pairs import draw_ordered, draw_sizes
from bertcli.batches.slots import SWAPPED, Spans
from bertcli.corpus.token_store import TokenStore
from tests.batches.stores import document_of, make_store, one_source_slots
from tests.batches.test_pairs import corpora


def draw(store: TokenStore, step: int, max_tokens: int, rows: int = 64) -> tuple[np.ndarray, Spans]:
    """Whether each row is swapped, and its spans in the order of the text."""
    slots = one_source_slots(3, step, step * rows, batch_size=rows)
    sizes = draw_sizes(slots.numbers, 3, max_tokens, short_probability=0.1, mask_rate=0.15)
    spans = draw_ordered(store, slots, 3, sizes)
    assert (spans.num_tokens <= sizes).all()
    swapped = slots.labels == SWAPPED
    return swapped, spans.swap(swapped)


@settings(max_examples=200)
@given(documents=corpora, step=st.integers(0, 1000), max_tokens=st.integers(7, 60))
def test_segments_follow_one_another_in_one_document(
    documents: list[list[int]], step: int, max_tokens: int
) -> None:
    store = make_store(documents)
    swapped, spans = draw(store, step, max_tokens)
    assert swapped.sum() == 32
    assert (spans.a_end > spans.a_start).all()
    assert (spans.b_end > spans.b_start).all()
    assert (spans.b_start >= spans.a_end).all()
    assert (document_of(store, spans.a_start) == document_of(store, spans.b_end - 1)).all()
    starts = store.sentences.astype(np.int64)
    # A segment has whole sentences, or is a part of one.
    for start, end in ((spans.a_start, spans.a_end), (spans.b_start, spans.b_end)):
        sentence = np.searchsorted(starts, start, side="right") - 1
        inside_one = end <= starts[sentence + 1]
        assert (inside_one | (np.isin(start, starts) & np.isin(end, starts))).all()
        assert (np.isin(start, starts) | np.isin(end, starts)).all()


@pytest.mark.parametrize("max_tokens", [13, 40, 125])
def test_nothing_but_the_text_tells_the_label(max_tokens: int) -> None:
    """Of lengths and cuts, every figure of the row's first segment is as frequent with either label."""
    generator = np.random.default_rng(0)
    documents = [generator.integers(1, 60, size=generator.integers(2, 40)).tolist() for _ in range(400)]
    store = make_store(documents)
    starts = store.sentences.astype(np.int64)
    found: dict[bool, list[np.ndarray]] = {False: [], True: []}
    for step in range(60):
        swapped, spans = draw(store, step, max_tokens, rows=512)
        parts = (spans.a_start, spans.a_end, spans.b_start, spans.b_end)
        features = [(~np.isin(each, starts)).astype(float) for each in parts]
        lengths = spans.a_end - spans.a_start, spans.b_end - spans.b_start
        a = [features[0], features[1], lengths[0]]
        b = [features[2], features[3], lengths[1]]
        for label in (False, True):
            here = swapped == label
            first, second = (b, a) if label else (a, b)
            found[label].append(np.stack([each[here] for each in (*first, *second)], axis=1))
    ordered, swapped = (np.concatenate(found[label]) for label in (False, True))
    for column in range(6):
        mean, other = ordered[:, column].mean(), swapped[:, column].mean()
        error = np.sqrt((ordered[:, column].var() + swapped[:, column].var()) / len(ordered))
        assert abs(mean - other) < 4 * error + 1e-12, (column, mean, other)


def test_rows_are_nearly_full() -> None:
    store = make_store([[12] * 400 for _ in range(20)])
    slots = one_source_slots(3, 0, 0, batch_size=2048)
    spans = draw_ordered(store, slots, 3, np.full(2048, 125))
    assert spans.num_tokens.mean() > 112
