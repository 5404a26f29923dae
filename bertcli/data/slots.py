"""(seed, slot number) -> the place of the corpus where a row starts, and whether B follows A.

Slot j of a step has the number (rows of all steps before) + j of one endless stream. Half of each batch's
slots are IsNext (in batches of odd size, the two labels get the extra slot in turn); a keyed permutation of
the batch chooses them. The IsNext slots walk over the places that give a true pair, the others over all
places; each round of a walk has a new keyed order. A place is a boundary between sentences: A ends there and
B begins.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bertcli.data.order import permute
from bertcli.data.random import draw_bits, make_key

IS_NEXT, NOT_NEXT = 0, 1
"""BERT's labels (Devlin et al. 2019, section 3.1, in the coding of the authors' release)."""
SWAPPED = 1
"""ALBERT's label of a pair in the wrong order (Lan et al. 2020, section 3.1)."""

I64 = NDArray[np.int64]


@dataclass(frozen=True)
class Slots:
    """Some of one step's slots.

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
