"""The number of hashes in a sequence that repeat an earlier one, in bounded memory.

Up to `BOUND` different hashes are all remembered, and the count is exact. Beyond it, only hashes whose low
bits are zero are kept, with one more bit each time the bound is reached. They are a uniform sample of the
different hashes, and each of their occurrences is counted from the start. The scaled count is an unbiased
estimate, whose standard error follows from the sample (Horvitz and Thompson 1952).
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from bertcli.advice.check.findings import excerpt

BOUND = 300_000
"""Number of different hashes that are remembered; each takes about 135 bytes, and 255 more if it repeats."""
_SHOWN = 1_000
"""Number of repeated hashes for which an excerpt is kept."""


@dataclass(frozen=True)
class Estimate:
    """A number, and its standard error: 0 if it is exact."""

    value: int
    error: float


@dataclass(slots=True)
class Repeated:
    """A repeated hash: its first and second place, an excerpt, and number and bytes of its repeats."""

    first: int
    again: int
    shown: str
    times: int = 0
    num_bytes: int = 0


class RepeatCounter:
    """A counter of hashes that repeat earlier ones."""

    def __init__(self, bound: int = BOUND):
        self._bound, self._mask = bound, 0
        self._first: dict[int, int] = {}
        self._repeated: dict[int, Repeated] = {}

    def add(self, hashes: Sequence[int], sizes: Sequence[int], place: int, texts: Sequence[str]) -> None:
        """Count the hashes of one place.

        Args:
            hashes: uniformly distributed hashes of 64 bits.
            sizes: the bytes behind each hash.
            place, texts: the place and the texts, to show what repeats.
        """
        for number, content_hash in enumerate(hashes):
            if content_hash & self._mask:
                continue
            if content_hash in self._first:
                self._note(content_hash, sizes[number], place, text=texts[number])
                continue
            self._first[content_hash] = place
            if len(self._first) > self._bound:
                self._thin_out()

    def _note(self, content_hash: int, num_bytes: int, place: int, text: str) -> None:
        repeated = self._repeated.get(content_hash)
        if repeated is None:
            shown = excerpt(text) if len(self._repeated) < _SHOWN else ""
            repeated = self._repeated[content_hash] = Repeated(self._first[content_hash], place, shown)
        repeated.times += 1
        repeated.num_bytes += num_bytes

    def _thin_out(self) -> None:
        self._mask = self._mask * 2 + 1
        self._first = {h: place for h, place in self._first.items() if not h & self._mask}
        self._repeated = {h: each for h, each in self._repeated.items() if not h & self._mask}

    def times(self) -> Estimate:
        """The number of hashes that repeat an earlier one."""
        return self._scale(each.times for each in self._repeated.values())

    def num_bytes(self) -> Estimate:
        """The bytes of the repeats."""
        return self._scale(each.num_bytes for each in self._repeated.values())

    def heaviest(self, number: int) -> list[Repeated]:
        """The hashes with the most repeated bytes, among the first thousand that repeated."""
        shown = [each for each in self._repeated.values() if each.shown]
        return sorted(shown, key=lambda each: -each.num_bytes)[:number]

    def _scale(self, values: Iterable[int]) -> Estimate:
        scale, total, squares = self._mask + 1, 0, 0
        for value in values:
            total += value
            squares += value * value
        return Estimate(scale * total, math.sqrt(scale * (scale - 1) * squares))
