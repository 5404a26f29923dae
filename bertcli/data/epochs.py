"""The order of labeled items: a plain shuffle of all of them in every epoch."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from bertcli.data.order import permute
from bertcli.data.random import make_key


class EpochOrder:
    """Step number -> the numbers of the items in the batch of that step: a pure function of size and seed.

    Batches are random samples, as in BERT's training. Batches of similar length would need less padding, but
    the model learns less from them (LOG.md, "Fine-tuning beside the Trainer"). The last batch of an epoch may
    be smaller.
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
