"""The order of the data: computed random numbers, and a keyed permutation without a table."""

import hashlib
import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

U64 = NDArray[np.uint64]

_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_MIX_1 = np.uint64(0xBF58476D1CE4E5B9)
_MIX_2 = np.uint64(0x94D049BB133111EB)
_LOW_32 = np.uint64(0xFFFFFFFF)


def make_key(seed: int, *names: str | int) -> np.uint64:
    """An independent 64-bit key for each (seed, names); `names`: the purpose of the draws."""
    text = "/".join(str(part) for part in (seed, *names))
    return np.uint64(int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "little"))


def draw_bits(key: np.uint64 | U64, counter: U64) -> U64:
    """64 random bits for each counter, uint64 [...]; `key` broadcasts against `counter`."""
    with np.errstate(over="ignore"):  # arithmetic modulo 2^64 is intended
        bits = np.asarray(counter * _GOLDEN + key)  # a new array: the next operations work in place
        bits ^= bits >> np.uint64(30)
        bits *= _MIX_1
        bits ^= bits >> np.uint64(27)
        bits *= _MIX_2
        bits ^= bits >> np.uint64(31)
    return bits


def to_unit(bits: U64) -> NDArray[np.float64]:
    """Bits -> uniform numbers in [0, 1), float64 [...], from the upper 53 bits."""
    return (bits >> np.uint64(11)).astype(np.float64) / (1 << 53)


def to_below(bits: U64, limit: int | U64) -> NDArray[np.int64]:
    """Bits -> uniform integers in [0, limit), int64 [...]; `limit` broadcasts, below 2^63.

    Limits below 2^32 use a multiplication in place of the slow division. In both cases, no integer is favored
    by more than limit / 2^32 of its share (limit / 2^64 for the larger limits).
    """
    limit = np.asarray(limit, dtype=np.uint64)
    if limit.max(initial=0) <= _LOW_32:
        return (((bits >> np.uint64(32)) * limit) >> np.uint64(32)).astype(np.int64)
    return (bits % limit).astype(np.int64)


_ROUNDS = 6
_LARGEST_SIZE = 1 << 62


def permute(index: NDArray[np.int64], size: int, key: np.uint64 | NDArray[np.uint64]) -> NDArray[np.int64]:
    """The images of `index` under the permutation of [0, size) that `key` names.

    Args:
        index: int64 [n], each in [0, size).
        size: number of permuted elements, at most 2^62.
        key: one key, or uint64 [n], a key for each index.

    Returns:
        int64 [n]; distinct indices under one key have distinct images.
    """
    assert 0 < size <= _LARGEST_SIZE
    key = np.broadcast_to(np.asarray(key, dtype=np.uint64), index.shape)
    image = _encipher(index.astype(np.uint64), size, key)
    outside = np.flatnonzero(image >= size)
    while len(outside):  # rarely twice: the grid exceeds `size` by less than 2 / sqrt(size) of it
        image[outside] = _encipher(image[outside], size, key[outside])
        outside = outside[image[outside] >= size]
    return image.astype(np.int64)


def _encipher(index: NDArray[np.uint64], size: int, key: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """One pass of the network over the grid [0, columns) x [0, rows), row-major: a bijection of the grid."""
    columns = math.isqrt(size - 1) + 1
    rows = -(-size // columns)
    row, column = np.divmod(index, np.uint64(columns))
    with np.errstate(over="ignore"):
        for number in range(0, _ROUNDS, 2):
            row = (row + draw_bits(key + np.uint64(number), column) % np.uint64(rows)) % np.uint64(rows)
            bits = draw_bits(key + np.uint64(number + 1), row)
            column = (column + bits % np.uint64(columns)) % np.uint64(columns)
    return row * np.uint64(columns) + column


class EpochOrder:
    """Step number -> the numbers of the items in the batch of that step: a pure function of size and seed.

    Batches are random samples, as in BERT's training. Batches of similar length would need less padding, but
    the model learns less from them (LOG.md, "Fine-tuning beside the Trainer"). The last batch of an epoch may
    be smaller.
    """

    def __init__(self, size: int, batch_size: int, seed: int, passes: int = 1):
        """`size`: number of items, at least one. `passes`: how often an epoch reads each of them."""
        self._size, self._batch_size, self._seed = size, batch_size, seed
        self._steps = math.ceil(size / batch_size)
        self.steps_per_epoch = self._steps * passes

    def __getitem__(self, step: int) -> NDArray[np.int64]:
        reading, place = divmod(step, self._steps)
        start = place * self._batch_size
        places = np.arange(start, min(start + self._batch_size, self._size))
        return permute(places, self._size, make_key(self._seed, "items", reading))


class PairOrder(EpochOrder):
    """Step number -> the numbers of the items of that step, most of which have another one of their class.

    Half of a batch is a random sample, as in `EpochOrder`; each item of it brings an item of the same class
    that is drawn at random. An item is there once, and alone if its class has no other. An epoch has so many
    steps that each item is `passes` times in the random half.
    """

    def __init__(self, classes: Sequence[int], batch_size: int, seed: int, passes: int):
        """`classes`: the class of each item."""
        super().__init__(len(classes), max(1, batch_size // 2), seed, passes)
        numbers = np.array(classes)
        self._members = {name: np.flatnonzero(numbers == name) for name in set(classes)}
        self._classes = classes

    def __getitem__(self, step: int) -> NDArray[np.int64]:
        items = super().__getitem__(step)
        draws = draw_bits(make_key(self._seed, "partners", step), np.arange(len(items), dtype=np.uint64))
        partners = [self._partner(item, draws[[place]])[0] for place, item in enumerate(items.tolist())]
        return np.unique(np.concatenate([items, partners]))

    def _partner(self, item: int, bits: U64) -> NDArray[np.int64]:
        """Another item of the class by the bits [1], or the item itself: int64 [1]."""
        members = self._members[self._classes[item]]
        others = members[members != item]
        return others[to_below(bits, len(others))] if len(others) else np.array([item])
