"""Which micro-batches of each step one process computes; all processes together compute the step."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeVar

T = TypeVar("T")


class MicroBatch(NamedTuple):
    """Rows that go through the model at once.

    Attributes:
        number: within the whole step, over all ranks.
        batch: a `tasks.base.TaskBatch`.
        is_dummy: another rank's rows, read once more and not counted, so that every rank makes as many
            forward passes: reducing the gradients needs that.
    """

    number: int
    batch: Any
    is_dummy: bool


@dataclass(frozen=True)
class Share:
    """Rank r of R computes micro-batches r, r + R, r + 2R, ... of each step.

    How a step is cut depends on `micro_batch_size` alone, so any number of ranks computes the same.
    """

    micro_batch_size: int
    rank: int = 0
    num_ranks: int = 1

    def of(self, parts: Sequence[T], read: Callable[[T], Any]) -> list[MicroBatch]:
        """This rank's micro-batches of a step that is cut into `parts`; `read` makes a batch of each."""
        turns = -(-len(parts) // self.num_ranks)
        numbers = [turn * self.num_ranks + self.rank for turn in range(turns)]
        return [
            MicroBatch(number, read(parts[number % len(parts)]), number >= len(parts)) for number in numbers
        ]
