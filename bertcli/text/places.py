"""The places of pieces in their text, without white space at the edges."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, slots=True)
class PlacedPieces:
    """The token ids of a text, and the place of each in it.

    Attributes:
        ids: without special tokens.
        spans: int32 [tokens, 2]; start and end of each, in characters of the text.
    """

    ids: list[int]
    spans: NDArray[np.int32]


def trim_places(text: str, offsets: Sequence[tuple[int, int]]) -> NDArray[np.int32]:
    """Start and end of each piece in characters of `text`, int32 [pieces, 2], both in ascending order.

    Pieces may hold the blank before a word: they lose white space on both sides. One of white space alone
    has an empty place at its end.
    """
    spans = np.array(offsets, np.int32).reshape(-1, 2)
    if not len(spans):
        return spans
    size = len(text)
    places = np.arange(size, dtype=np.int32)
    blank = np.fromiter((character.isspace() for character in text), np.bool_, size)
    # By place: where the next character that is no blank starts, and where the last one before it ends.
    next_start = np.append(np.minimum.accumulate(np.where(blank, size, places)[::-1])[::-1], size)
    last_end = np.append(0, np.maximum.accumulate(np.where(blank, 0, places + 1)))
    start = np.minimum(next_start[spans[:, 0]], spans[:, 1])
    end = np.maximum(last_end[spans[:, 1]], start)
    trimmed = np.stack([start, end], axis=1)
    return np.maximum.accumulate(trimmed, axis=0).astype(np.int32)
