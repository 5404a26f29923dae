"""The order of labeled items: every epoch each of them once, plainly shuffled."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from bertcli.data.order import permute
from bertcli.data.random import make_key


class EpochOrder:
    """Step number -> the numbers of the items of that step's batch: a pure function of size and seed.

    Batches are fair samples, as BERT's training data is shuffled: ones of like length would cost attention
    no padding, but what is learned from them is less (LOG.md, "Fine-tuning beside the Trainer"). The last
    batch of an epoch may be a small one.
    """

    def __init__(self, size: int, batch_size: int, seed: int):
        """`size`: number of items, at least one."""
        self._size, self._batch_size, self._seed = size, batch_size, seed
        self.steps_per_epoch = math.ceil(size / batch_size)

    def __getitem__(self, step: int) -> NDArray[np.int64]:
        epoch, place = divmod(step, self.steps_per_epoch)
        start = place * self._batch_size
        places = np.arange(start, min(start + self._batch_size, self._size))
        return permute(places, self._size, make_key(self._seed, "items", epoch))
