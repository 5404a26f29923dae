"""Copies and near copies of documents: signatures of their words, and which documents are left out.

Two documents are compared by their shingles, the runs of three words (Broder 1997). Signatures of least
hashes find candidates: 40 bands of three hashes, one of which agrees with a probability of 1 - (1 - s^3)^40
for a similarity s (Leskovec et al. 2020, section 3.4): 0.9997 for 0.57, the similarity to a copy with a
random tenth of its words changed. The sets themselves then decide.
"""

import hashlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

SHINGLE_WORDS = 3
"""Words in a shingle."""
BANDS, ROWS = 40, 3
"""Bands of a signature, and the hashes of each."""
_LATEST = 8
"""Earlier documents in a band's group with which a document is compared, besides the first."""
U32 = NDArray[np.uint32]
U64 = NDArray[np.uint64]

_random = np.random.Generator(np.random.PCG64(20260101))
_MASKS = _random.integers(1 << 32, size=BANDS * ROWS, dtype=np.uint32)
_FACTORS = _random.integers(1 << 31, size=BANDS * ROWS, dtype=np.uint32) * np.uint32(2) + np.uint32(1)
_PLACES = (np.uint64(0x9E3779B97F4A7C15), np.uint64(0xC2B2AE3D27D4EB4F), np.uint64(0x165667B19E3779F9))
_MOST_WORDS = 1 << 20
_SHINGLES_AT_ONCE = 4096  # a long document takes no more memory


class Signature(NamedTuple):
    """What is kept of a document.

    Attributes:
        content: a hash of its words in order.
        shingles: the hashes of its shingles of words, each once, sorted.
        bands: uint64 [BANDS].
    """

    content: int
    shingles: U32
    bands: U64


class Signer:
    """Makes signatures; keeps the hashes of words, because most come again."""

    def __init__(self) -> None:
        self._hashes: dict[str, int] = {}

    def __call__(self, words: Sequence[str]) -> Signature:
        """The signature of a document with one word or more."""
        if len(self._hashes) > _MOST_WORDS:
            self._hashes.clear()
        hashes = self._hashes
        for word in words:
            if word not in hashes:
                hashes[word] = hash64(word.encode())
        own = np.array([hashes[word] for word in words], np.uint64)
        width = max(1, len(own) - SHINGLE_WORDS + 1)
        mixed = np.zeros(width, np.uint64)
        for place, factor in enumerate(_PLACES):
            part = own[place : place + width]
            mixed[: len(part)] += part * factor  # modulo 2^64
            mixed ^= mixed >> np.uint64(29)
        shingles = np.unique((mixed >> np.uint64(32)).astype(np.uint32))
        return Signature(hash64(own.tobytes()), shingles, _bands(shingles))


def hash64(data: bytes) -> int:
    return int.from_bytes(hashlib.blake2b(data, digest_size=8).digest(), "little")


def _bands(shingles: U32) -> U64:
    least = np.full(BANDS * ROWS, ~np.uint32(0))
    for start in range(0, len(shingles), _SHINGLES_AT_ONCE):
        some = shingles[start : start + _SHINGLES_AT_ONCE, None]
        least = np.minimum(least, ((some ^ _MASKS) * _FACTORS).min(axis=0))  # modulo 2^32
    bands = np.zeros(BANDS, np.uint64)
    for row in least.reshape(BANDS, ROWS).T.astype(np.uint64):
        bands = (bands ^ row) * _PLACES[0]
        bands ^= bands >> np.uint64(31)
    return bands


def similarity(one: U32, other: U32) -> float:
    """The share of shingles that both have among those that either has."""
    common = len(np.intersect1d(one, other, assume_unique=True))
    return common / (len(one) + len(other) - common)


def first_with(contents: U64) -> NDArray[np.int64]:
    """The number of the first document with the same content, for each document; int64 [documents]."""
    _, first, numbers = np.unique(contents, return_index=True, return_inverse=True)
    return first[numbers]


def candidates(bands: Iterable[U64]) -> U64:
    """Pairs of documents with an equal band, as later * 2^32 + earlier, sorted; each once.

    `bands`: for each band, its values in all documents, in their order; 0 for those without shingles, which
    are in no pair.
    """
    pairs = [np.zeros(0, np.uint64)]
    for values in bands:
        order = np.argsort(values, kind="stable").astype(np.uint64)[np.count_nonzero(values == 0) :]
        same = values[order[1:]] == values[order[:-1]]
        numbers = np.arange(len(order))
        begins = np.concatenate([np.ones(min(1, len(order)), np.bool_), ~same])
        starts = np.maximum.accumulate(np.where(begins, numbers, 0))
        for back in range(1, _LATEST + 1):
            places = numbers[back:]
            places = places[places - back >= starts[places]]
            pairs.append(order[places] << np.uint64(32) | order[places - back])
        later = np.flatnonzero(numbers - starts > _LATEST)
        pairs.append(order[later] << np.uint64(32) | order[starts[later]])
    return np.unique(np.concatenate(pairs))


class Near(NamedTuple):
    """A near copy: its number, that of the earlier document that stays, and their similarity."""

    document: int
    kept: int
    similarity: float


def near_copies(pairs: U64, shingles: Callable[[int], U32], threshold: float) -> Iterator[Near]:
    """The documents that are near copies of an earlier one that stays, in their order.

    `shingles`: number of a document -> its shingles.
    """
    kept: dict[int, int] = {}
    later, earlier = pairs >> np.uint64(32), pairs & np.uint64((1 << 32) - 1)
    for document, other in zip(map(int, later), map(int, earlier), strict=True):
        if document in kept:
            continue
        first = kept.get(other, other)
        if (found := similarity(shingles(document), shingles(first))) >= threshold:
            kept[document] = first
            yield Near(document, first, found)
