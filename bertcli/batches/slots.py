"""(seed, slot number) -> the place of the corpus where a row starts, and its label (IsNext or NotNext).

Slot j of a step has the number (rows of all steps before) + j of one endless stream. Half of each batch's
slots are IsNext; a keyed permutation of the batch chooses them. In batches of odd size, the two labels get
the extra slot in turn. The IsNext slots walk over the places that give a true pair, the others over all
places; each round of a walk has a new keyed order. A place is a boundary between sentences: A ends there and
B begins.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bertcli.batches.order import U64, draw_bits, make_key, permute
from bertcli.corpus.manifest import REBUILD
from bertcli.corpus.token_store import TokenStore
from bertcli.system.errors import UserError

IS_NEXT, NOT_NEXT = 0, 1
"""Labels of BERT (Devlin et al. 2019, section 3.1, in the coding of the authors' release)."""
SWAPPED = 1
"""Label of ALBERT for a pair in the wrong order (Lan et al. 2020, section 3.1)."""

I64 = NDArray[np.int64]


@dataclass(frozen=True)
class Slots:
    """Some of the slots of one step.

    Attributes:
        numbers: int64 [B], their numbers in the endless stream.
        labels: int64 [B], `IS_NEXT` or `NOT_NEXT`.
        turns: int64 [B], the number of earlier slots with the same label.
    """

    numbers: I64
    labels: I64
    turns: I64

    def take(self, rows: I64) -> Slots:
        """The slots of some rows."""
        return Slots(self.numbers[rows], self.labels[rows], self.turns[rows])


def draw_slots(seed: int, step: int, before: int, batch_size: int) -> Slots:
    """All slots of a step; `before`: the number of slots of all steps before it."""
    key = draw_bits(make_key(seed, "labels"), np.array([step], dtype=np.uint64))
    in_batch = np.arange(batch_size, dtype=np.int64)
    turn = permute(in_batch, batch_size, key[0])
    is_next_before = before // 2
    num_is_next = (before + batch_size) // 2 - is_next_before
    is_next = turn < num_is_next
    not_next_before = before - is_next_before
    return Slots(
        numbers=before + in_batch,
        labels=np.where(is_next, IS_NEXT, NOT_NEXT),
        turns=np.where(is_next, is_next_before + turn, not_next_before + turn - num_is_next),
    )


def walk(turns: I64, num_places: int, seed: int, name: str) -> I64:
    """The place that each turn visits: every place once in each round, in the order of that round.

    Args:
        turns: int64 [n].
        num_places: the number of places.
        name: distinguishes this walk from others of the same seed.

    Returns:
        int64 [n], each in [0, num_places).
    """
    rounds, index = np.divmod(turns, num_places)
    keys = draw_bits(make_key(seed, "walk", name), rounds.astype(np.uint64))
    return permute(index, num_places, keys)


DAMAGED = f"the token store is damaged: its offsets contradict each other. {REBUILD}"


@dataclass(frozen=True)
class Spans:
    """The places of a batch's segments in the store's ids: int64 [B] each; ends are exclusive.

    Rows of one text have B where A ends, and both are one segment.
    """

    a_start: I64
    a_end: I64
    b_start: I64
    b_end: I64

    @property
    def num_tokens(self) -> I64:
        """Number of tokens of A and B together, int64 [B]."""
        return self.a_end - self.a_start + self.b_end - self.b_start

    def swap(self, where: np.ndarray) -> Spans:
        """The spans with A and B exchanged in the rows where bool [B] is true."""
        a_start = np.where(where, self.b_start, self.a_start)
        b_start = np.where(where, self.a_start, self.b_start)
        a_end, b_end = np.where(where, self.b_end, self.a_end), np.where(where, self.a_end, self.b_end)
        return Spans(a_start, a_end, b_start, b_end=b_end)

    def take(self, rows: I64) -> Spans:
        """The spans of some rows."""
        return Spans(self.a_start[rows], self.a_end[rows], self.b_start[rows], b_end=self.b_end[rows])


@dataclass(frozen=True)
class Room:
    """The limits of the spans: A within [a_first, a_end), B within [b_start, b_last). int64 [B] each.

    `boundary` is the number of the sentence that begins at `a_end`; all others are numbers of tokens.
    """

    boundary: I64
    a_first: I64
    a_end: I64
    b_start: I64
    b_last: I64


@contextmanager
def damage_named() -> Iterator[None]:
    """Raise `UserError` for an offset that points nowhere: the store is damaged.

    `open_store` does not read all offsets, so the damage may show only here.
    """
    try:
        yield
    except IndexError:
        raise UserError(DAMAGED) from None


def checked(spans: Spans, size: I64) -> Spans:
    """The spans. Raises `UserError` if they are impossible, which means that the store is damaged."""
    lengths = np.minimum(spans.a_end - spans.a_start, spans.b_end - spans.b_start)
    starts = np.minimum(spans.a_start, spans.b_start)
    tokens = spans.num_tokens
    if min(lengths.min(), starts.min()) < 0 or (tokens < 1).any() or (tokens > size).any():
        raise UserError(DAMAGED)
    return spans


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
