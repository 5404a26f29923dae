"""The tokens of a row -> the words of the texts in it, as their writer knows them, whatever the tokenizer."""

from __future__ import annotations

import unicodedata
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from bertcli.tasks.examples import ChoiceExample, Example, QuestionExample, TaggedExample
from bertcli.tasks.question_answering import Passage
from bertcli.tasks.supervised import Item
from bertcli.tasks.token_classification import WindowWords
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


class _Part(NamedTuple):
    """A text, and the positions in a row of its pieces, of which the first `skipped` are not in the row."""

    text: str
    tokens: range
    segment: int
    skipped: int = 0


def read_texts(tokenizer: Tokenizer, texts: Sequence[str], max_length: int) -> ReadRow:
    """The row of one text or two, cut to `max_length` tokens as `Frame.fit` does."""
    a, *others = tokenizer.encode_batch(texts)
    row = tokenizer.frame.fit(a, others[0] if others else None, max_length)
    places = zip(texts, _places(row, tokenizer.frame), strict=False)
    return _read(
        row, [_Part(text, tokens, segment) for segment, (text, tokens) in enumerate(places)], tokenizer
    )


def read_item(item: Item, number: int, example: Example, tokenizer: Tokenizer) -> ReadRow:
    """The row `number` of an item that a task made of `example`; for choices, it is that of the choice."""
    row = item.rows[number]
    if isinstance(example, TaggedExample):
        return _read_tagged(item, example, tokenizer)
    first, second = _places(row, tokenizer.frame)
    a, *others = example.texts
    parts = [_Part(a, first, 0)]
    if isinstance(example, ChoiceExample):
        choice = example.choices[number]
        kept = min(len(tokenizer.encode(choice)), len(second))  # text_b is shortened first, then the choice
        middle = second.stop - kept
        parts.append(_Part(example.text_b or "", range(second.start, middle), 1))
        parts.append(_Part(choice, range(middle, second.stop), 1))
    elif isinstance(example, QuestionExample):
        passage: Passage = item.layout
        parts.append(_Part(example.context, second, 1, skipped=passage.window.start))
    elif others:
        parts.append(_Part(others[0], second, 1))
    return _read(row, parts, tokenizer)


def _read(row: Row, parts: Sequence[_Part], tokenizer: Tokenizer) -> ReadRow:
    placed = tokenizer.encode_with_spans([part.text for part in parts])
    words: list[Word] = []
    for part, each in zip(parts, placed, strict=True):
        spans = each.spans[part.skipped : part.skipped + len(part.tokens)]
        words += split_words(part.text, spans, part.tokens.start, segment=part.segment)
    return _row_of(row, words, sum(len(each.ids) for each in placed))


def _row_of(row: Row, words: Sequence[Word], pieces: int) -> ReadRow:
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


def _places(row: Row, frame: Frame) -> tuple[range, range]:
    """The positions of the tokens of both texts; special tokens are between them, and in no text."""
    special, start = frame.special_ids, frame.a_starts
    stop = next(place for place in range(start, row.length) if row.ids[place] in special)
    return range(start, stop), range(frame.b_starts(stop - start), row.length - len(frame.suffix))


def _read_tagged(item: Item, example: TaggedExample, tokenizer: Tokenizer) -> ReadRow:
    """A window of tagged words, with all of its words, even those that another window predicts."""
    layout: WindowWords = item.layout
    (row,) = item.rows
    window = _places(row, tokenizer.frame)[0]
    bounds = np.cumsum([0, *map(len, tokenizer.encode_words(example.words))])
    pieces = int(bounds[-1])
    bounds += layout.positions[0] - bounds[layout.words[0]]
    places = (
        range(max(start, window.start), min(stop, window.stop)) for start, stop in pairwise(bounds.tolist())
    )
    words = [Word(text, tokens, 0) for text, tokens in zip(example.words, places, strict=True) if tokens]
    return _row_of(row, words, pieces)
