"""(seed, slot number) -> source, place of the corpus where a row starts, and label (IsNext or NotNext).

Slot j of a step has the number (rows of all steps before) + j of one endless stream. A keyed permutation of
the batch chooses the slots of each source, as many as `SourceRows` says, and those that are IsNext: half of
each source's slots. If their number is odd, the two labels get the extra slot in turn. The IsNext slots of a
source walk over the places that give a true pair, the others over all places; each round of a walk has a new
keyed order. A place is a boundary between sentences: A ends there and B begins.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from bertcli.batches.order import draw_bits, make_key, permute
from bertcli.corpus.manifest import REBUILD
from bertcli.system.errors import UserError

IS_NEXT, NOT_NEXT = 0, 1
"""Labels of BERT (Devlin et al. 2019, section 3.1, in the coding of the authors' release)."""
SWAPPED = 1
"""Label of ALBERT for a pair in the wrong order (Lan et al. 2020, section 3.1)."""

I64 = NDArray[np.int64]


class Slots(NamedTuple):
    """Some of the slots of one step.

    Attributes:
        numbers: int64 [B], their numbers in the endless stream.
        sources: int64 [B], the numbers of their sources.
        places: int64 [B], the number of earlier slots of the same source.
        labels: int64 [B], `IS_NEXT` or `NOT_NEXT`.
        turns: int64 [B], the number of earlier slots of the same source with the same label.
    """

    numbers: I64
    sources: I64
    places: I64
    labels: I64
    turns: I64

    def take(self, rows: I64) -> Slots:
        """The slots of some rows."""
        return Slots(*(each[rows] for each in self))


def draw_slots(seed: int, step: int, before: I64, rows: I64) -> Slots:
    """All slots of a step.

    Args:
        before: int64 [sources], the number of slots of each source in all steps before.
        rows: int64 [sources], the number of slots of each source in this step.
    """
    key = draw_bits(make_key(seed, "labels"), np.array([step], dtype=np.uint64))
    in_batch = np.arange(rows.sum(), dtype=np.int64)
    turn = permute(in_batch, len(in_batch), key[0])
    ends = np.cumsum(rows)
    source = np.searchsorted(ends, turn, side="right")
    turn -= (ends - rows)[source]
    is_next_before = before // 2
    num_is_next = (before + rows) // 2 - is_next_before
    is_next = turn < num_is_next[source]
    turns = np.where(is_next, is_next_before[source], (before - is_next_before - num_is_next)[source]) + turn
    places = np.empty_like(in_batch)
    places[np.argsort(source, kind="stable")] = np.concatenate(
        [first + np.arange(number) for first, number in zip(before, rows, strict=True)]
    )
    return Slots(
        numbers=before.sum() + in_batch,
        sources=source,
        places=places,
        labels=np.where(is_next, IS_NEXT, NOT_NEXT),
        turns=turns,
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


class Spans(NamedTuple):
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
        return Spans(*np.where(where, self[2:] + self[:2], self))

    def take(self, rows: I64) -> Spans:
        """The spans of some rows."""
        return Spans(*(each[rows] for each in self))


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
