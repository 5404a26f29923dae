"""The words of a text by a tokenizer's own pre-tokenization, each with its place and its pieces."""

import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from bertcli.tokenizer.pieces import PlacedPieces, needs_no_blank
from bertcli.tokenizer.tokenizer import Tokenizer

_JOINER, _DIVIDER = "\u200d", "\u200b"
"""The zero-width characters that join what people see as one, and that divide words."""
_SKIN = ("\U0001f3fb", "\U0001f3ff")
"""The first and the last modifier of an emoji's skin."""


@dataclass(frozen=True, slots=True)
class PlacedWord:
    """A word at characters `start` to `end` (exclusive) of its text.

    Attributes:
        ids: its token ids in the text, and after them those of white space that follows.
    """

    start: int
    end: int
    ids: tuple[int, ...]


def placed_words(tokenizer: Tokenizer, texts: Sequence[str]) -> list[list[PlacedWord]]:
    """The words of each text; their ids together are the ids of the text.

    A word is what the pre-tokenizer cuts, cut again beside punctuation, symbols, and letters of scripts
    without blanks between words, where a piece ends there: the pre-tokenizer of a Unigram cuts at blanks
    alone. No word begins inside a character that people see as one: a letter and its accents, an emoji and
    its modifiers. A text without any visible piece has no words.
    """
    encoded = tokenizer.encode_with_spans(texts)
    return [_words(text, placed) for text, placed in zip(texts, encoded, strict=True)]


def _words(text: str, placed: PlacedPieces) -> list[PlacedWord]:
    begins = _begins(text, placed.spans, placed.numbers)
    bounds = list(pairwise([*begins, len(placed.ids)])) if begins else []
    places = [_visible(placed.spans[begin:end]) for begin, end in bounds]
    limits = [*(start for start, _ in places[1:]), len(text)]
    words, after = list[PlacedWord](), 0
    for (start, end), limit, (begin, stop) in zip(places, limits, bounds, strict=False):
        ids = placed.ids[begin if words else 0 : stop]  # blanks before the first word belong to it
        while start > after and is_invisible(text[start - 1]):
            start -= 1
        after = _with_marks(text, end, limit)
        words.append(PlacedWord(start, after, tuple(ids)))
    return words


def _begins(text: str, spans: NDArray[np.int32], numbers: Sequence[int | None]) -> list[int]:
    """The pieces that begin a word."""
    begins = list[int]()
    end, number = 0, None
    for piece, (start, stop) in enumerate(spans.tolist()):
        if start == stop:
            continue  # white space alone
        if not begins or (start >= end and _divides(text, start, end, is_other=numbers[piece] != number)):
            begins.append(piece)
        end, number = max(end, stop), numbers[piece]
    return begins


def _divides(text: str, start: int, end: int, is_other: bool) -> bool:
    """True if a word begins at `start`, after a piece that ends at `end`.

    `is_other`: the pre-tokenizer cuts there.
    """
    if start == end and (_is_mark(text[start]) or text[start - 1] == _JOINER):
        return False
    if is_other or start > end:
        return True
    return any(_stands_alone(each) for each in (text[start - 1], text[start]))


def _stands_alone(character: str) -> bool:
    """True for punctuation, symbols, and letters of scripts without blanks between words."""
    return unicodedata.category(character)[0] in "PS" or needs_no_blank(character)


def _is_mark(character: str) -> bool:
    """True for a character that belongs to the one before it, or is invisible there."""
    is_skin = _SKIN[0] <= character <= _SKIN[1]
    return is_skin or unicodedata.category(character)[0] == "M" or is_invisible(character)


def is_invisible(character: str) -> bool:
    """True for a character that only says how others are written: joiners, directions, soft hyphens."""
    return unicodedata.category(character) == "Cf" and character != _DIVIDER


def _visible(spans: NDArray[np.int32]) -> tuple[int, int]:
    visible = spans[spans[:, 0] < spans[:, 1]]
    return int(visible[:, 0].min()), int(visible[:, 1].max())


def _with_marks(text: str, end: int, limit: int) -> int:
    """The end of a word with the marks after it, which are in no piece if the normalizer removes them."""
    return next((at for at in range(end, limit) if not _is_mark(text[at])), max(end, limit))
