"""The rows of each source in each step, from their shares."""

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from bertcli.batches.share import BatchSizes
from bertcli.batches.slots import I64

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
