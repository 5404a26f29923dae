"""Slots -> spans of the token store: segment A and segment B.

A row grows in both directions from a boundary between sentences. A ends there. B begins there (IsNext) or at
a random sentence of another document (NotNext). All other rules are the same for both labels, so that only
the text differs. A's share of the room is uniform. One side gets the room that the other cannot use. A drops
a partial first sentence if it also holds a complete one. Rows are full wherever the documents allow.

The rules are those of Devlin et al. 2019, section 3.1 and appendix A.2, with two deviations: the labels are
exactly half and half (the authors' released generator makes 57 to 100 % NotNext), and a NotNext B is never
from A's document.
"""

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from bertcli.batches.order import U64, draw_bits, make_key, to_below, to_unit
from bertcli.batches.slots import I64, IS_NEXT, SWAPPED, Slots, Spans, checked, damage_named, walk
from bertcli.corpus.token_store import TokenStore


class Room(NamedTuple):
    """The limits of the spans: A within [a_first, a_end), B within [b_start, b_last). int64 [B] each.

    `boundary` is the number of the sentence that begins at `a_end`; all others are numbers of tokens.
    """

    boundary: I64
    a_first: I64
    a_end: I64
    b_start: I64
    b_last: I64


@damage_named()
def draw_pairs(store: TokenStore, slots: Slots, seed: int, size: I64) -> Spans:
    """The sentence pair of each slot.

    Args:
        store: the token store; it must hold two documents (not pieces of one), and one of two sentences.
        size: int64 [B], the target size of each row (`draw_sizes`).

    Returns:
        spans of at least one token each, together at most `size`.

    Raises:
        UserError: the store is damaged: its offsets contradict each other.
    """
    is_next = slots.labels == IS_NEXT
    true_place = store.first_pair + walk(slots.turns[is_next], store.num_pairs, seed, name="is-next")
    false_place = walk(slots.turns[~is_next], store.num_sentences, seed, name="not-next")
    false_place += store.first_sentence
    other = row_bits(seed, "other", slots.numbers[~is_next])
    rooms = np.empty((len(Room._fields), len(is_next)), np.int64)
    rooms[:, is_next] = true_pair_rooms(store, true_place)
    rooms[:, ~is_next] = _false_pair_rooms(store, false_place, other, size=size[~is_next])
    share = 1 + to_below(row_bits(seed, "share", slots.numbers), (size - 1).astype(np.uint64))
    return _fit(store, Room(*rooms), size, share=share)


@damage_named()
def draw_spans(store: TokenStore, slots: Slots, seed: int, size: I64) -> Spans:
    """A span of running text for each slot, without a label; the slots walk over all sentences.

    Arguments, result and errors are those of `draw_pairs`.
    """
    sentence = store.first_sentence + walk(slots.places, store.num_sentences, seed, name="mlm")
    first, last = run_of(store.documents, sentence)
    middle = token_at(store, sentence)
    room = Room(sentence, token_at(store, first), middle, b_start=middle, b_last=token_at(store, last))
    share = to_below(row_bits(seed, "share", slots.numbers), size.astype(np.uint64))
    return _fit(store, room, size, share=share)


def _false_pair_rooms(store: TokenStore, sentence: I64, bits: U64, size: I64) -> Room:
    """The limits of NotNext pairs: A ends with `sentence`; B begins with a uniform sentence of other
    documents.

    Only the text may reveal the label. In true pairs, A never ends its document, and B never begins one. The
    same holds here, except in documents of one sentence. B gets the room of A's true continuation; it begins
    earlier if its document ends too soon for that.
    """
    first, last = run_of(store.documents, sentence)
    boundary = np.minimum(sentence + 1, np.maximum(last - 1, first + 1))
    a_end = token_at(store, boundary)
    continuation = token_at(store, last) - a_end
    room = np.where(continuation > 0, np.minimum(continuation, size), size)

    (texts,) = store.texts or (None,)
    own_first, own_last = (first, last) if texts is None else run_of(texts, sentence)
    other = store.first_sentence + to_below(
        bits, (store.num_sentences - (own_last - own_first)).astype(np.uint64)
    )
    other += np.where(other >= own_first, own_last - own_first, 0)  # skip A's document, all its pieces
    other_first, other_last = run_of(store.documents, other)
    earliest = np.minimum(other_first + 1, other_last - 1)
    b_last = token_at(store, other_last)
    latest = sentence_from(store, b_last - room + 1, other_last, at_most=room) - 1
    b_start = token_at(store, np.maximum(np.minimum(other, latest), earliest))
    b_last = np.minimum(b_last, b_start + room)
    return Room(boundary, token_at(store, first), a_end, b_start=b_start, b_last=b_last)


def draw_sizes(numbers: I64, seed: int, max_tokens: int, short_probability: float, mask_rate: float) -> I64:
    """The target size of each slot of `numbers` [B], in tokens of text; int64 [B].

    The size is `max_tokens`. With the probability `short_probability` it is a random smaller size, which is
    large enough that one masked token is at most `mask_rate` of the row.
    """
    smallest = min(max_tokens, math.ceil(1 / mask_rate))
    bits = row_bits(seed, "size", numbers)
    is_short = to_unit(bits) < short_probability
    short = smallest + to_below(draw_bits(bits, np.uint64(1)), max_tokens + 1 - smallest)  # pyright: ignore
    return np.where(is_short, short, max_tokens)


def _fit(store: TokenStore, room: Room, size: I64, share: I64) -> Spans:
    """Grow A backward and B forward from the boundary until `size` tokens are reached or the text ends."""
    a_room, b_room = room.a_end - room.a_first, room.b_last - room.b_start
    a_tokens = np.minimum(share, a_room)
    b_tokens = np.minimum(size - a_tokens, b_room)
    a_tokens = np.minimum(size - b_tokens, a_room)
    a_start = room.a_end - a_tokens
    sentence_start = token_at(store, sentence_from(store, a_start, room.boundary, at_most=a_tokens))
    a_start = np.where(sentence_start < room.a_end, sentence_start, a_start)
    b_tokens = np.minimum(size - (room.a_end - a_start), b_room)
    return checked(Spans(a_start, room.a_end, room.b_start, b_end=room.b_start + b_tokens), size)


Whole = Callable[[I64], I64]
"""Limits in tokens -> the tokens of the whole sentences next to the boundary that fit; 0 if none fits."""


@damage_named()
def draw_ordered(store: TokenStore, slots: Slots, seed: int, size: I64) -> Spans:
    """The pair of each slot, swapped where its label is 1; the slots walk over all true pairs.

    The store must hold a document of two sentences. Arguments, result and errors are those of `draw_pairs`.
    """
    place = store.first_pair + walk(slots.places, store.num_pairs, seed, name="order")
    room = true_pair_rooms(store, place)
    share = 1 + to_below(row_bits(seed, "share", slots.numbers), (size - 1).astype(np.uint64))
    bits = row_bits(seed, "order", slots.numbers)
    a_first, a_inner, b_inner = (draw_bits(bits, np.full_like(bits, i)) % np.uint64(2) == 1 for i in range(3))
    sides = (
        (room.a_end - room.a_first, _before(store, room)),
        (room.b_last - room.b_start, _after(store, room)),
    )
    a_tokens, b_rest = _divide(share, size, *sides)
    b_tokens, a_rest = _divide(share, size, *reversed(sides))
    a_tokens, b_tokens = np.where(a_first, a_tokens, a_rest), np.where(a_first, b_rest, b_tokens)
    # A sentence that does not fit keeps the part next to the boundary, or the part at its other end.
    first, end = token_at(store, room.boundary - 1), token_at(store, room.boundary + 1)
    a_cut = (room.a_end - a_tokens > first) & ~a_inner
    b_cut = (room.b_start + b_tokens < end) & ~b_inner
    a_start = np.where(a_cut, first, room.a_end - a_tokens)
    b_start = np.where(b_cut, end - b_tokens, room.b_start)
    spans = Spans(a_start, a_start + a_tokens, b_start, b_end=b_start + b_tokens)
    return checked(spans, size).swap(slots.labels == SWAPPED)


def _divide(share: I64, size: I64, first: tuple[I64, Whole], second: tuple[I64, Whole]) -> tuple[I64, I64]:
    """(tokens of the `first` segment, which gets `share`; tokens of the `second`, which gets the rest).

    Each segment is given by its room in tokens, and its whole sentences.
    """
    (room, whole), (other_room, other_whole) = first, second
    other = np.minimum(size - np.minimum(share, room), other_room)
    own = _filled(np.minimum(size - other, room), whole)
    return own, _filled(np.minimum(size - own, other_room), other_whole)


def _filled(limit: I64, whole: Whole) -> I64:
    tokens = whole(limit)
    return np.where(tokens > 0, tokens, limit)


def _before(store: TokenStore, room: Room) -> Whole:
    """The tokens of whole sentences that end at the boundary, by the limit."""

    def whole(limit: I64) -> I64:
        sentence = sentence_from(store, room.a_end - limit, room.boundary, at_most=limit)
        return room.a_end - token_at(store, sentence)

    return whole


def _after(store: TokenStore, room: Room) -> Whole:
    """The tokens of whole sentences that begin at the boundary, by the limit."""
    _, last = run_of(store.documents, room.boundary)

    def whole(limit: I64) -> I64:
        farthest = np.minimum(last, room.boundary + limit + 1)
        beyond = sentence_from(store, room.b_start + limit + 1, farthest, at_most=farthest - room.boundary)
        all_fit = token_at(store, farthest) <= room.b_start + limit
        return token_at(store, np.where(all_fit, farthest, beyond - 1)) - room.b_start

    return whole


def true_pair_rooms(store: TokenStore, place: I64) -> Room:
    """The limits around the boundaries of true pairs; `place`: the numbers of the pairs in the whole
    store."""
    document = np.searchsorted(store.pairs, place.astype(np.uint64), side="right") - 1
    first, last = store.documents[document].astype(np.int64), store.documents[document + 1].astype(np.int64)
    boundary = first + 1 + place - store.pairs[document].astype(np.int64)
    middle = token_at(store, boundary)
    return Room(boundary, token_at(store, first), middle, b_start=middle, b_last=token_at(store, last))


def run_of(starts: U64, sentence: I64) -> tuple[I64, I64]:
    """The first sentence of the run that holds each sentence, and of the next run; `starts`: the runs'
    starts."""
    run = np.searchsorted(starts, sentence.astype(np.uint64), side="right") - 1
    return starts[run].astype(np.int64), starts[run + 1].astype(np.int64)


def sentence_from(store: TokenStore, token: I64, last: I64, at_most: I64) -> I64:
    """The first sentence that begins at `token` or later: `last`, or one of the `at_most` before it.

    Every sentence has a token, so a sentence that begins n tokens before another is at most n sentences
    before it. `np.searchsorted` would read all over the array, which is slow in a store larger than memory.
    """
    low, high = np.maximum(last - at_most, 0), last
    for _ in range(int(at_most.max(initial=0)).bit_length()):
        middle = (low + high) >> 1
        is_before = token_at(store, middle) < token
        low, high = np.where(is_before, middle + 1, low), np.where(is_before, high, middle)
    return low


def token_at(store: TokenStore, sentence: I64) -> I64:
    """The first token of each sentence."""
    return store.sentences[sentence].astype(np.int64)


def row_bits(seed: int, name: str, numbers: I64) -> U64:
    """64 random bits for each slot; `name`: the purpose of the draws."""
    return draw_bits(make_key(seed, name), numbers.astype(np.uint64))
