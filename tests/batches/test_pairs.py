from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bertcli.batches.pairs import draw_pairs, draw_sizes, draw_spans
from bertcli.batches.slots import IS_NEXT, Spans
from bertcli.corpus.token_store import TokenStore
from bertcli.system.errors import UserError
from tests.batches.stores import document_of, make_store, one_source_slots

corpora = st.lists(st.lists(st.integers(1, 30), min_size=1, max_size=9), min_size=2, max_size=9).filter(
    lambda documents: any(len(document) > 1 for document in documents)
)


def draw(store: TokenStore, step: int = 0, max_tokens: int = 29, short: float = 0.1, rows: int = 64):
    slots = one_source_slots(3, step, step * rows, batch_size=rows)
    return slots, draw_pairs(store, slots, 3, draw_sizes(slots.numbers, 3, max_tokens, short, 0.15))


@settings(max_examples=200)
@given(documents=corpora, step=st.integers(0, 1000), max_tokens=st.integers(7, 60))
def test_pairs_keep_every_rule(documents: list[list[int]], step: int, max_tokens: int) -> None:
    store = make_store(documents)
    slots, spans = draw(store, step, max_tokens)
    is_next = slots.labels == IS_NEXT
    a_document, b_document = document_of(store, spans.a_start), document_of(store, spans.b_start)

    assert (spans.a_end > spans.a_start).all()
    assert (spans.b_end > spans.b_start).all()
    assert (spans.a_end - spans.a_start + spans.b_end - spans.b_start <= max_tokens).all()
    assert (document_of(store, spans.a_end - 1) == a_document).all()
    assert (document_of(store, spans.b_end - 1) == b_document).all()
    assert (spans.b_start[is_next] == spans.a_end[is_next]).all()
    assert (a_document[is_next] == b_document[is_next]).all()
    assert (a_document[~is_next] != b_document[~is_next]).all()
    starts = store.sentences.astype(np.int64)
    assert np.isin(spans.b_start, starts).all()
    assert np.isin(spans.a_end, starts).all()


def test_rows_are_full_where_documents_allow() -> None:
    store = make_store([[12] * 400 for _ in range(20)])
    _, spans = draw(store, max_tokens=125, short=0.0, rows=2048)
    tokens = spans.a_end - spans.a_start + spans.b_end - spans.b_start
    assert (tokens == 125).mean() > 0.95
    assert tokens.mean() > 124


def test_a_starts_with_a_sentence_where_it_holds_a_whole_one() -> None:
    store = make_store([[12] * 100 for _ in range(5)])
    _, spans = draw(store, max_tokens=60, rows=512)
    whole = spans.a_end - spans.a_start >= 12
    assert (spans.a_start[whole] % 12 == 0).all()
    assert 0.5 < whole.mean() < 1


@pytest.mark.parametrize("repeats", [1, 2, 4, 9])
def test_both_labels_have_rows_of_like_length(repeats: int) -> None:
    """Nothing but the text may tell the labels apart, in documents shorter than a row as well."""
    store = make_store([[5, 9, 4, 7, 12, 3] * repeats for _ in range(200)])
    tokens: dict[int, list[int]] = {0: [], 1: []}
    for step in range(50):
        slots, spans = draw(store, step, max_tokens=125)
        lengths = spans.a_end - spans.a_start + spans.b_end - spans.b_start
        for label, length in zip(slots.labels.tolist(), lengths.tolist(), strict=True):
            tokens[label].append(length)
    means = {label: np.mean(lengths) for label, lengths in tokens.items()}
    assert abs(means[0] - means[1]) < 0.03 * means[0]


def test_short_rows_have_uniform_sizes_from_the_smallest_that_masks_exactly() -> None:
    store = make_store([[1] * 3000 for _ in range(3)])
    _, spans = draw(store, max_tokens=50, short=1.0, rows=20_000)
    tokens = spans.a_end - spans.a_start + spans.b_end - spans.b_start
    counts = np.bincount(tokens, minlength=51)[7:]
    assert tokens.min() == 7
    assert ((counts - counts.mean()) ** 2 / counts.mean()).sum() < 100  # 43 degrees of freedom


def test_a_round_uses_every_true_pair_once() -> None:
    store = make_store([[3, 3, 3], [3], [3, 3, 3, 3, 3], [3, 3]])
    assert store.num_pairs == 7
    used: list[int] = []
    for step in range(7):
        slots, spans = draw(store, step, rows=2)
        used += spans.b_start[slots.labels == IS_NEXT].tolist()
    assert sorted(used) == [3, 6, 15, 18, 21, 24, 30]


def test_not_next_b_is_uniform_over_the_other_documents() -> None:
    store = make_store([[8], [8, 8], [8, 8, 8]])
    seen: dict[int, list[int]] = {0: [], 1: [], 2: []}
    for step in range(400):
        slots, spans = draw(store, step, max_tokens=7, rows=30)
        for a, b in zip(*(x[slots.labels != IS_NEXT] for x in (spans.a_start, spans.b_start)), strict=True):
            seen[int(document_of(store, np.array([a]))[0])].append(int(b) // 8)
    # A document's first sentence stands for the one after it, where there is one: 1 for 2, and 3 for 4.
    for document, weights in {0: {2: 2, 4: 2, 5: 1}, 1: {0: 1, 4: 2, 5: 1}, 2: {0: 1, 2: 2}}.items():
        counts = np.bincount(seen[document], minlength=6)
        assert sorted(np.flatnonzero(counts)) == list(weights)
        expected = counts.sum() * np.array(list(weights.values())) / sum(weights.values())
        assert ((counts[list(weights)] - expected) ** 2 / expected).sum() < 20


@given(documents=corpora, step=st.integers(0, 1000))
def test_single_spans_stay_in_one_document(documents: list[list[int]], step: int) -> None:
    store = make_store(documents)
    slots = one_source_slots(3, step, 32 * step, batch_size=32)
    spans: Spans = draw_spans(store, slots, 3, draw_sizes(slots.numbers, 3, 20, 0.1, 0.15))
    assert (spans.a_end == spans.b_start).all()
    assert (spans.b_end > spans.a_start).all()
    assert (spans.b_end - spans.a_start <= 20).all()
    assert (document_of(store, spans.a_start) == document_of(store, spans.b_end - 1)).all()


@pytest.mark.parametrize("far", [10**6, 2**63])
def test_offsets_that_contradict_each_other_are_an_error(far: int) -> None:
    store = make_store([[5, 5, 5]] * 40)
    store.documents[5:20] += np.uint64(far)
    with pytest.raises(
        UserError, match=r"the token store is damaged: its offsets .* prepare CONFIG --overwrite"
    ):
        draw(store)
