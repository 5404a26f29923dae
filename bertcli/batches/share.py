"""The numbers of rows and steps of a run, and the micro-batches of a step that a process computes."""

import math
from bisect import bisect_left
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from bertcli.batches.slots import I64
from bertcli.config.run import DataRecipe, PretrainRecipe
from bertcli.config.schema import DEFAULT_STEPS
from bertcli.config.section import ends, value_at
from bertcli.objectives.registry import OBJECTIVES
from bertcli.tokenizer.frame import Frame

T = TypeVar("T")


class MicroBatch(NamedTuple):
    """The rows of one forward pass.

    Attributes:
        number: its number within the step, over all ranks.
        batch: a `batches.batch.Batch` or a `tasks.supervised.LabeledBatch`.
        is_dummy: true for rows of another rank, which are read again and not counted. Every rank then makes
            the same number of forward passes, which the reduction of gradients needs.
    """

    number: int
    batch: Any
    is_dummy: bool


@dataclass(frozen=True)
class Share:
    """A rank's share of each step: rank r of R computes micro-batches r, r + R, r + 2R, ...

    The micro-batches depend only on `micro_batch_size`, so any number of ranks computes the same.
    """

    micro_batch_size: int
    rank: int = 0
    num_ranks: int = 1

    def of(self, parts: Sequence[T], read: Callable[[T], Any]) -> list[MicroBatch]:
        """This rank's micro-batches of a step with these `parts`; `read`: part -> batch."""
        turns = -(-len(parts) // self.num_ranks)
        size = len(parts)
        numbers = [turn * self.num_ranks + self.rank for turn in range(turns)]
        return [MicroBatch(number, read(parts[number % size]), number >= size) for number in numbers]


def in_parts(items: Iterable[T], most_rows: int, rows: Callable[[T], int]) -> list[list[T]]:
    """The items in order, in parts of at most `most_rows` rows; an item with more is a part of its own.

    `rows`: the number of an item's rows, which stay together.
    """
    parts: list[list[T]] = []
    left = 0
    for item in items:
        if not parts or rows(item) > left:
            parts.append([])
            left = most_rows
        parts[-1].append(item)
        left -= rows(item)
    return parts


class BatchSizes:
    """The number of rows in each step: constant, or a ramp, rounded.

    A row's number in the endless stream is that of its step's first row plus its place in the step. The rows
    of a step therefore depend only on the sizes of the steps before it.
    """

    def __init__(self, value: int | tuple[int, int], ramp_steps: int = 1) -> None:
        """`ramp_steps`: the steps in which `value` moves, if it has a start and an end (`value_at`)."""
        self.largest = max(ends(value))
        self.ramp_steps = ramp_steps
        self._end = ends(value)[1]
        moving = ramp_steps if len(set(ends(value))) > 1 else 0
        sizes = [round(value_at(value, step, ramp_steps)) for step in range(moving)]
        self._before = np.concatenate([[0], np.cumsum(sizes, dtype=np.int64)])

    def of(self, step: int) -> int:
        """Number of rows in step `step`, counted from 0."""
        return self.before(step + 1) - self.before(step)

    def before(self, step: int) -> int:
        """Number of rows in all steps before `step`."""
        moving = len(self._before) - 1
        return int(self._before[min(step, moving)]) + max(0, step - moving) * self._end


Shares = Callable[[int], Sequence[float]]
"""The number of a step -> the share of each source in its rows; all shares together are 1."""
_AT_ONCE = 4096
"""Steps whose rows are counted at once."""


class SourceRows:
    """The number of rows of each source in each step.

    After every step, each source has had its exact share of all rows up to then, rounded by the largest
    remainders. Where a source gets less than a row a step, it may be about a row off: no row is taken back.
    """

    def __init__(self, sizes: BatchSizes, shares: Shares) -> None:
        self._sizes, self._shares = sizes, shares
        self._exact = np.zeros(len(shares(0)))
        self._before = np.zeros((1, len(self._exact)), np.int64)

    def before(self, step: int) -> I64:
        """The rows of each source in all steps before `step`, int64 [sources]."""
        if len(self._exact) == 1:
            return np.array([self._sizes.before(step)])
        while step >= len(self._before):
            self._count_more()
        return self._before[step]

    def _count_more(self) -> None:
        first = len(self._before) - 1
        steps = range(first, first + _AT_ONCE)
        totals = np.array([self._sizes.before(step + 1) for step in steps])
        rows = np.diff(totals, prepend=self._sizes.before(first))
        exact = self._exact + np.cumsum(
            rows[:, None] * np.array([self._shares(step) for step in steps]), axis=0
        )
        counted = _rounded(exact, totals)
        if (np.diff(counted, axis=0, prepend=self._before[-1:]) < 0).any():
            counted = _never_less(exact, rows, self._before[-1])
        self._exact, self._before = exact[-1], np.concatenate([self._before, counted])


def _rounded(exact: NDArray[np.float64], totals: I64) -> I64:
    """The numbers [n, sources] as integers with these totals [n], by the largest remainders."""
    whole = np.floor(exact)
    remainders = np.argsort(np.argsort(whole - exact, axis=1, kind="stable"), axis=1)
    return (whole + (remainders < (totals - whole.sum(axis=1))[:, None])).astype(np.int64)


def _never_less(exact: NDArray[np.float64], rows: I64, before: I64) -> I64:
    """The numbers as integers that never become less, step by step; each step adds `rows` [n]."""
    counted = np.empty(exact.shape, np.int64)
    for number, (wanted, left) in enumerate(zip(exact, rows.tolist(), strict=True)):
        due = wanted - before
        given = np.floor(due).clip(0)
        for _ in range(int(left - given.sum())):
            given[np.argmax(due - given)] += 1
        for _ in range(int(given.sum() - left)):
            given[np.argmin(np.where(given > 0, due - given, np.inf))] -= 1
        before = counted[number] = before + given.astype(np.int64)
    return counted


def tokens_until(config: DataRecipe, frame: Frame, sizes: BatchSizes, step: int) -> int:
    """The most tokens of text in all rows of the steps before `step`."""
    cost = frame.cost(OBJECTIVES[config.objective].pairs.is_pair)
    return sizes.before(step) * (config.max_length - cost)


def num_steps(config: PretrainRecipe, frame: Frame, num_tokens: float) -> int:
    """The number of steps; an epoch is the number of full rows that hold the corpus's tokens once."""
    data, training = config.data, config.training
    if training.epochs is None:
        return training.steps or DEFAULT_STEPS
    tokens = training.epochs * num_tokens
    fewest = tokens_until(data, frame, BatchSizes(min(ends(training.batch_size))), step=1)
    numbers = range(math.ceil(tokens / max(1, fewest)) + 1)

    def read(steps: int, ramp: int) -> int:
        return tokens_until(data, frame, BatchSizes(training.batch_size, ramp), step=steps)

    steps = bisect_left(numbers, tokens, lo=1, key=lambda steps: read(steps, ramp=steps))
    ramp = ramp_steps(config, steps)
    return steps if ramp == steps else bisect_left(numbers, tokens, lo=1, key=lambda steps: read(steps, ramp))


def ramp_steps(config: PretrainRecipe, steps: int) -> int:
    """The value of `training.ramp_steps` in a run of `steps` steps."""
    return steps if config.training.ramp_steps == "auto" else config.training.ramp_steps
