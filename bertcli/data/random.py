"""Random numbers as a pure function of (key, counter): the only source of randomness in the data path.

There is no state, and the order of calls does not matter: any process computes the draw of any slot. The
function is SplitMix64 at an arbitrary position (Steele, Lea and Flood 2014, "Fast splittable pseudorandom
number generators", figure 15), vectorized over the counters.
"""

from __future__ import annotations

import hashlib

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

    For limits below 2^32 a multiplication replaces the slow division. Either way no integer is favored
    by more than limit / 2^32 of its share (limit / 2^64 for the larger ones).
    """
    limit = np.asarray(limit, dtype=np.uint64)
    if limit.max(initial=0) <= _LOW_32:
        return (((bits >> np.uint64(32)) * limit) >> np.uint64(32)).astype(np.int64)
    return (bits % limit).astype(np.int64)
