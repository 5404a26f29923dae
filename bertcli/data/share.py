"""Which micro-batches of each step one process computes; all processes together compute the step."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeVar

T = TypeVar("T")


class MicroBatch(NamedTuple):
    """Rows that go through the model at once.

    Attributes:
        number: within the whole step, over all ranks.
        batch: a `tasks.base.TaskBatch`.
        is_stand_in: another rank's rows, read once more and not counted, so that every rank makes as many
            forward passes: the exchange between ranks needs that.
    """

    number: int
    batch: Any
    is_stand_in: bool


@dataclass(frozen=True)
class Share:
    """Rank r of R computes micro-batches r, r + R, r + 2R, ... of each step.

    How a step is cut depends on `micro_batch_size` alone, so any number of ranks computes the same.
    """

    micro_batch_size: int
    rank: int = 0
    num_ranks: int = 1

    def of(self, parts: Sequence[T]) -> list[tuple[int, T, bool]]:
        """This rank's of all parts of a step: their number, the part, and whether it is a stand-in."""
        turns = -(-len(parts) // self.num_ranks)
        numbers = [turn * self.num_ranks + self.rank for turn in range(turns)]
        return [(number, parts[number % len(parts)], number >= len(parts)) for number in numbers]
