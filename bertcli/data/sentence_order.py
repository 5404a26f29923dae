"""Slots -> two consecutive segments, in order or swapped (Lan et al. 2020, section 3.1).

Only the text may reveal the label. A row of running text begins with a whole sentence and ends inside one;
with its halves swapped, it would be cut in the middle of the row. So both segments are treated alike: each
has whole sentences alone, either may be the one that gets its share of the room first, and a sentence that is
longer than its room is cut at either end, all by draws that do not depend on the label.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from bertcli.data.random import draw_bits, to_below
from bertcli.data.rooms import (
    Room,
    Spans,
    checked,
    damage_named,
    row_bits,
    run_of,
    sentence_from,
    token_at,
    true_pair_rooms,
)
from bertcli.data.slots import I64, SWAPPED, Slots, walk
from bertcli.store.token_store import TokenStore

Whole = Callable[[I64], I64]
"""Limits in tokens -> the tokens of the whole sentences next to the boundary that fit; 0 if none does."""


@damage_named()
def draw_ordered(store: TokenStore, slots: Slots, seed: int, size: I64) -> Spans:
    """The pair of each slot, swapped where its label is 1; the slots walk over all true pairs.

    The store must hold a document of two sentences; otherwise as `data.pairs.draw_pairs`.
    """
    room = true_pair_rooms(store, walk(slots.numbers, store.num_pairs, seed, name="order"))
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
    # Of a sentence that does not fit: the part next to the boundary, or the one at its other end.
    first, end = token_at(store, room.boundary - 1), token_at(store, room.boundary + 1)
    a_cut = (room.a_end - a_tokens > first) & ~a_inner
    b_cut = (room.b_start + b_tokens < end) & ~b_inner
    a_start = np.where(a_cut, first, room.a_end - a_tokens)
    b_start = np.where(b_cut, end - b_tokens, room.b_start)
    spans = Spans(a_start, a_start + a_tokens, b_start, b_end=b_start + b_tokens)
    return checked(spans, size).swap(slots.labels == SWAPPED)


def _divide(share: I64, size: I64, first: tuple[I64, Whole], second: tuple[I64, Whole]) -> tuple[I64, I64]:
    """Tokens of the segment that gets `share` first, and of the other, which gets the rest; each side is its
    room and its whole sentences."""
    (room, whole), (other_room, other_whole) = first, second
    other = np.minimum(size - np.minimum(share, room), other_room)
    own = _filled(np.minimum(size - other, room), whole)
    return own, _filled(np.minimum(size - own, other_room), other_whole)


def _filled(limit: I64, whole: Whole) -> I64:
    tokens = whole(limit)
    return np.where(tokens > 0, tokens, limit)


def _before(store: TokenStore, room: Room) -> Whole:
    """Of the sentences that end at the boundary."""

    def whole(limit: I64) -> I64:
        sentence = sentence_from(store, room.a_end - limit, room.boundary, at_most=limit)
        return room.a_end - token_at(store, sentence)

    return whole


def _after(store: TokenStore, room: Room) -> Whole:
    """Of the sentences that begin at the boundary."""
    _, last = run_of(store.documents, room.boundary)

    def whole(limit: I64) -> I64:
        farthest = np.minimum(last, room.boundary + limit + 1)
        beyond = sentence_from(store, room.b_start + limit + 1, farthest, at_most=farthest - room.boundary)
        all_fit = token_at(store, farthest) <= room.b_start + limit
        return token_at(store, np.where(all_fit, farthest, beyond - 1)) - room.b_start

    return whole
