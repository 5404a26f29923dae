"""The order of labelled items: every epoch each of them once, in batches of like length."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from bertcli.data.order import permute
from bertcli.data.random import make_key

POOL_BATCHES = 64
"""Batches cut from one stretch of the shuffled items, sorted by length: long enough for rows of like length,
short enough that an epoch still mixes."""


class LikeLengthOrder:
    """Step number -> the numbers of the items of that step's batch: a pure function of lengths and seed.

    The items are shuffled anew for each epoch, sorted by length within each pool of `POOL_BATCHES` batches,
    cut into batches, and the batches shuffled. The last batch of the shuffled items may be a small one.
    """

    def __init__(self, lengths_N: NDArray[np.int64], batch_size: int, seed: int):
        """`lengths_N`: tokens of each item, at least one item."""
        self._lengths_N, self._batch_size, self._seed = lengths_N, batch_size, seed
        self.steps_per_epoch = math.ceil(len(lengths_N) / batch_size)
        self._epoch = -1
        self._batches: list[NDArray[np.int64]] = []

    def __getitem__(self, step: int) -> NDArray[np.int64]:
        epoch, place = divmod(step, self.steps_per_epoch)
        if epoch != self._epoch:
            self._batches, self._epoch = self._draw(epoch), epoch
        return self._batches[place]

    def _draw(self, epoch: int) -> list[NDArray[np.int64]]:
        size = len(self._lengths_N)
        shuffled_N = permute(np.arange(size), size, make_key(self._seed, "items", epoch))
        batches = []
        pool = POOL_BATCHES * self._batch_size
        for start in range(0, size, pool):
            part = shuffled_N[start : start + pool]
            part = part[np.argsort(self._lengths_N[part], kind="stable")]
            batches += [part[i : i + self._batch_size] for i in range(0, len(part), self._batch_size)]
        order = permute(np.arange(len(batches)), len(batches), make_key(self._seed, "batches", epoch))
        return [batches[i] for i in order]
