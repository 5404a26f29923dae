"""The order of the data: a keyed permutation of [0, size), computed for any index without a table.

The table of a trillion places would take terabytes, and every rank needs the same. A Feistel network
computes it instead, over the smallest grid a x b that covers `size` (Black and Rogaway 2002, "Ciphers with
arbitrary finite domains", the generalized-Feistel method); a value beyond `size` is enciphered again.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from bertcli.data.random import draw_bits

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
