"""Slots -> spans of the token store: segment A and segment B.

A row grows in both directions from a boundary between sentences: A ends there, and B begins there (IsNext) or
at a random sentence of another document (NotNext). Both labels have the same rules otherwise, so that only
the text differs: A's share of the room is uniform, one side gets the room that the other cannot use, and A
drops a partial first sentence if it also holds a complete one. Rows are full wherever the documents allow.

Devlin et al. 2019, section 3.1 and appendix A.2, with two deviations: the labels are exactly half and half
(the authors' released generator makes 57 to 100 % NotNext), and a NotNext B is never from A's document.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, fields

import numpy as np

from bertcli.data.random import U64, draw_bits, make_key, to_below, to_unit
from bertcli.data.slots import I64, IS_NEXT, SWAPPED, Slots, walk
from bertcli.errors import UserError
from bertcli.store.manifest import REBUILD
from bertcli.store.token_store import TokenStore

_DAMAGED = f"the token store is damaged: its offsets contradict each other. {REBUILD}"


@dataclass(frozen=True)
class Spans:
    """The places of a batch's segments in the store's ids: int64 [B] each; ends are exclusive.

    In rows of one text, B begins where A ends, and both are one segment.
    """

    a_start: I64
    a_end: I64
    b_start: I64
    b_end: I64

    @property
    def num_tokens(self) -> I64:
        """int64 [B], tokens of A and B together."""
        return self.a_end - self.a_start + self.b_end - self.b_start

    def swap(self, where: np.ndarray) -> Spans:
        """With A in the place of B, and B in that of A, in the rows where bool [B] is true."""
        a_start = np.where(where, self.b_start, self.a_start)
        b_start = np.where(where, self.a_start, self.b_start)
        a_end, b_end = np.where(where, self.b_end, self.a_end), np.where(where, self.a_end, self.b_end)
        return Spans(a_start, a_end, b_start, b_end=b_end)

    def take(self, rows: I64) -> Spans:
        """The spans of some rows."""
        return Spans(self.a_start[rows], self.a_end[rows], self.b_start[rows], b_end=self.b_end[rows])


@dataclass(frozen=True)
class _Room:
    """The limits of the spans: A within [a_first, a_end), B within [b_start, b_last). int64 [B] each.

    `boundary` is the number of the sentence that begins at `a_end`; all others are numbers of tokens.
    """

    boundary: I64
    a_first: I64
    a_end: I64
    b_start: I64
    b_last: I64


@contextmanager
def _damage_named() -> Iterator[None]:
    """An offset that points nowhere means a damaged store: `open_store` does not read all offsets."""
    try:
        yield
    except IndexError:
        raise UserError(_DAMAGED) from None


@_damage_named()
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
    true_place = walk(slots.turns[is_next], store.num_pairs, seed, name="is-next")
    false_place = walk(slots.turns[~is_next], store.num_sentences, seed, name="not-next")
    other = _draw(seed, "other", slots.numbers[~is_next])
    room = _join(
        is_next,
        _true_pair_rooms(store, true_place),
        _false_pair_rooms(store, false_place, other, size=size[~is_next]),
    )
    share = 1 + to_below(_draw(seed, "share", slots.numbers), (size - 1).astype(np.uint64))
    return _fit(store, room, size, share=share)


@_damage_named()
def draw_ordered(store: TokenStore, slots: Slots, seed: int, size: I64) -> Spans:
    """A true pair for each slot, swapped where its label is 1; the slots walk over all true pairs.

    The store must hold a document of two sentences; otherwise as `draw_pairs`.
    """
    place = walk(slots.numbers, store.num_pairs, seed, name="order")
    share = 1 + to_below(_draw(seed, "share", slots.numbers), (size - 1).astype(np.uint64))
    return _fit(store, _true_pair_rooms(store, place), size, share=share).swap(slots.labels == SWAPPED)


@_damage_named()
def draw_spans(store: TokenStore, slots: Slots, seed: int, size: I64) -> Spans:
    """A span of running text for each slot, without a label; the slots walk over all sentences.

    Arguments, result and errors are those of `draw_pairs`.
    """
    sentence = walk(slots.numbers, store.num_sentences, seed, name="mlm")
    first, last = _run_of(store.documents, sentence)
    middle = _token_at(store, sentence)
    room = _Room(sentence, _token_at(store, first), middle, b_start=middle, b_last=_token_at(store, last))
    share = to_below(_draw(seed, "share", slots.numbers), size.astype(np.uint64))
    return _fit(store, room, size, share=share)


def _true_pair_rooms(store: TokenStore, place: I64) -> _Room:
    document = np.searchsorted(store.pairs, place.astype(np.uint64), side="right") - 1
    first, last = store.documents[document].astype(np.int64), store.documents[document + 1].astype(np.int64)
    boundary = first + 1 + place - store.pairs[document].astype(np.int64)
    middle = _token_at(store, boundary)
    return _Room(boundary, _token_at(store, first), middle, b_start=middle, b_last=_token_at(store, last))


def _false_pair_rooms(store: TokenStore, sentence: I64, bits: U64, size: I64) -> _Room:
    """A ends with `sentence`; B begins with a uniformly drawn sentence of the other documents.

    Only the text may reveal the label. In true pairs A never ends its document, and B never begins one: the
    same holds here, except in documents of one sentence. B gets the room of A's true continuation; where B's
    document ends too soon for it, B begins earlier.
    """
    first, last = _run_of(store.documents, sentence)
    boundary = np.minimum(sentence + 1, np.maximum(last - 1, first + 1))
    a_end = _token_at(store, boundary)
    continuation = _token_at(store, last) - a_end
    room = np.where(continuation > 0, np.minimum(continuation, size), size)

    own_first, own_last = (first, last) if store.sources is None else _run_of(store.sources, sentence)
    other = to_below(bits, (store.num_sentences - (own_last - own_first)).astype(np.uint64))
    other += np.where(other >= own_first, own_last - own_first, 0)  # skip A's document, all its pieces
    other_first, other_last = _run_of(store.documents, other)
    earliest = np.minimum(other_first + 1, other_last - 1)
    b_last = _token_at(store, other_last)
    latest = _sentence_from(store, b_last - room + 1, other_last, at_most=room) - 1
    b_start = _token_at(store, np.maximum(np.minimum(other, latest), earliest))
    return _Room(
        boundary, _token_at(store, first), a_end, b_start=b_start, b_last=np.minimum(b_last, b_start + room)
    )


def draw_sizes(numbers: I64, seed: int, max_tokens: int, short_probability: float, mask_rate: float) -> I64:
    """The target size of each slot of `numbers` [B], in tokens of text; int64 [B].

    It is `max_tokens`, or with `short_probability` a random smaller size, but large enough that one masked
    token is at most `mask_rate` of the row.
    """
    smallest = min(max_tokens, math.ceil(1 / mask_rate))
    bits = _draw(seed, "size", numbers)
    is_short = to_unit(bits) < short_probability
    short = smallest + to_below(draw_bits(bits, np.uint64(1)), max_tokens + 1 - smallest)  # pyright: ignore
    return np.where(is_short, short, max_tokens)


def _fit(store: TokenStore, room: _Room, size: I64, share: I64) -> Spans:
    """Grow A backward and B forward from the boundary until `size` tokens are reached or the text ends."""
    a_room, b_room = room.a_end - room.a_first, room.b_last - room.b_start
    a_tokens = np.minimum(share, a_room)
    b_tokens = np.minimum(size - a_tokens, b_room)
    a_tokens = np.minimum(size - b_tokens, a_room)
    a_start = room.a_end - a_tokens
    sentence_start = _token_at(store, _sentence_from(store, a_start, room.boundary, at_most=a_tokens))
    a_start = np.where(sentence_start < room.a_end, sentence_start, a_start)
    b_tokens = np.minimum(size - (room.a_end - a_start), b_room)
    spans = Spans(a_start, room.a_end, room.b_start, b_end=room.b_start + b_tokens)
    ends = np.minimum(spans.a_end - a_start, b_tokens), np.minimum(a_start, spans.b_start)
    if min(end.min() for end in ends) < 0 or (spans.num_tokens < 1).any() or (spans.num_tokens > size).any():
        raise UserError(_DAMAGED)
    return spans


def _run_of(starts: U64, sentence: I64) -> tuple[I64, I64]:
    """First sentence of the run that holds each sentence, and of the next run, by their `starts`."""
    run = np.searchsorted(starts, sentence.astype(np.uint64), side="right") - 1
    return starts[run].astype(np.int64), starts[run + 1].astype(np.int64)


def _sentence_from(store: TokenStore, token: I64, last: I64, at_most: I64) -> I64:
    """The first sentence that begins at `token` or later: `last`, or one of the `at_most` before it.

    Every sentence has a token, so one that begins n tokens before another is at most n sentences before it.
    `np.searchsorted` would read all over the array, which is slow in a store larger than memory.
    """
    low, high = np.maximum(last - at_most, 0), last
    for _ in range(int(at_most.max(initial=0)).bit_length()):
        middle = (low + high) >> 1
        is_before = _token_at(store, middle) < token
        low, high = np.where(is_before, middle + 1, low), np.where(is_before, high, middle)
    return low


def _token_at(store: TokenStore, sentence: I64) -> I64:
    return store.sentences[sentence].astype(np.int64)


def _draw(seed: int, name: str, numbers: I64) -> U64:
    return draw_bits(make_key(seed, name), numbers.astype(np.uint64))


def _join(is_next: np.ndarray, true_rooms: _Room, false_rooms: _Room) -> _Room:
    def scatter(name: str) -> I64:
        joined = np.empty(len(is_next), dtype=np.int64)
        joined[is_next], joined[~is_next] = getattr(true_rooms, name), getattr(false_rooms, name)
        return joined

    return _Room(**{field.name: scatter(field.name) for field in fields(_Room)})
