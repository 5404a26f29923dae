"""Which micro-batches of each step a process computes; all processes together compute the step."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeVar

T = TypeVar("T")


class MicroBatch(NamedTuple):
    """The rows of one forward pass.

    Attributes:
        number: within the step, over all ranks.
        batch: a `tasks.base.TaskBatch`.
        is_dummy: rows of another rank, read again and not counted, so that every rank makes the same number
            of forward passes, which the reduction of gradients needs.
    """

    number: int
    batch: Any
    is_dummy: bool


@dataclass(frozen=True)
class Share:
    """Rank r of R computes micro-batches r, r + R, r + 2R, ... of each step.

    The micro-batches depend only on `micro_batch_size`, so any number of ranks computes the same.
    """

    micro_batch_size: int
    rank: int = 0
    num_ranks: int = 1

    def of(self, parts: Sequence[T], read: Callable[[T], Any]) -> list[MicroBatch]:
        """This rank's micro-batches of a step with these `parts`; `read`: part -> batch."""
        turns = -(-len(parts) // self.num_ranks)
        numbers = [turn * self.num_ranks + self.rank for turn in range(turns)]
        return [
            MicroBatch(number, read(parts[number % len(parts)]), number >= len(parts)) for number in numbers
        ]
