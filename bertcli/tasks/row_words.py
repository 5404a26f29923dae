"""The tokens of a row -> the words of the texts in it, as their writer knows them, whatever the tokenizer."""

import unicodedata
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from bertcli.tasks.words import word_spans
from bertcli.tokenizer.frame import Frame, Row
from bertcli.tokenizer.pieces import needs_no_blank
from bertcli.tokenizer.tokenizer import Tokenizer


@dataclass(frozen=True, slots=True)
class Word:
    """A word, and its tokens in a row.

    Attributes:
        text: the word as it was written.
        tokens: the positions of its pieces in the row, at least one.
        segment: 0 in the first text of the row, 1 in the second.
    """

    text: str
    tokens: range
    segment: int


@dataclass(frozen=True)
class ReadRow:
    """A row, and the words in it; the other tokens are special.

    `dropped` is the number of the texts' tokens that are not in this row, because it was full.
    """

    row: Row
    words: tuple[Word, ...]
    dropped: int


class Part(NamedTuple):
    """A text, and the positions in a row of its pieces, of which the first `skipped` are not in the row."""

    text: str
    tokens: range
    segment: int
    skipped: int = 0


def read_texts(tokenizer: Tokenizer, texts: Sequence[str], max_length: int) -> ReadRow:
    """The row of one text or two, cut to `max_length` tokens as `Frame.fit` does."""
    a, *others = tokenizer.encode_batch(texts)
    return read_row(tokenizer.frame.fit(a, others[0] if others else None, max_length), texts, tokenizer)


def read_row(row: Row, texts: Sequence[str], tokenizer: Tokenizer) -> ReadRow:
    """The words of a row that was made of these texts: one or two."""
    places = zip(texts, text_places(row, tokenizer.frame), strict=False)
    parts = [Part(text, tokens, segment) for segment, (text, tokens) in enumerate(places)]
    return read_parts(row, parts, tokenizer)


def read_parts(row: Row, parts: Sequence[Part], tokenizer: Tokenizer) -> ReadRow:
    """The words of a row that was made of these parts, in their order."""
    placed = tokenizer.encode_with_spans([part.text for part in parts])
    words: list[Word] = []
    for part, each in zip(parts, placed, strict=True):
        spans = each.spans[part.skipped : part.skipped + len(part.tokens)]
        words += split_words(part.text, spans, part.tokens.start, segment=part.segment)
    return row_of(row, words, sum(len(each.ids) for each in placed))


def row_of(row: Row, words: Sequence[Word], pieces: int) -> ReadRow:
    """The row and its words; `pieces` is the number of pieces of all texts, also of those not in the row."""
    return ReadRow(row, tuple(words), pieces - sum(len(word.tokens) for word in words))


def split_words(text: str, spans: NDArray[np.int32], first: int, segment: int = 0) -> Iterator[Word]:
    """The words of pieces, whose places in the text are `spans` and whose positions in a row begin at
    `first`.

    Words are those of `tasks.words.word_spans`. Each piece is a word in scripts without blanks between words,
    except that all pieces of one character are together.
    """
    starts = [start for start, _ in word_spans(text)]
    words = [bisect_right(starts, start) for start in spans[:, 0].tolist()]
    begins = [
        piece
        for piece, word in enumerate(words)
        if piece == 0
        or word != words[piece - 1]
        or _divides(text, before=spans[piece - 1, 1], start=spans[piece, 0])
    ]
    for begin, end in pairwise([*begins, len(words)]):
        written = text[spans[begin, 0] : spans[end - 1, 1]]
        yield Word(written.strip(), range(first + begin, first + end), segment)


def _divides(text: str, before: np.int32, start: np.int32) -> bool:
    """True if a piece at `start` begins a word without a blank, after a piece that ends at `before`."""
    if start < before or start == len(text) or unicodedata.category(text[start]).startswith("M"):
        return False
    return needs_no_blank(text[start]) or needs_no_blank(text[before - 1 : before])


def text_places(row: Row, frame: Frame) -> tuple[range, range]:
    """The positions of the tokens of both texts; special tokens are between them, and in no text."""
    special, start = frame.special_ids, frame.a_starts
    stop = next(place for place in range(start, row.length) if row.ids[place] in special)
    return range(start, stop), range(frame.b_starts(stop - start), row.length - len(frame.suffix))
