"""The tokens of a row -> the words of the texts in it, as their writer knows them, whatever the tokenizer."""

from __future__ import annotations

import unicodedata
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from bertcli.examples.examples import ChoiceExample, Example, QuestionExample, TaggedExample
from bertcli.examples.words import word_spans
from bertcli.tasks.question_answering import Passage
from bertcli.tasks.supervised import Item
from bertcli.tasks.token_classification import WindowWords
from bertcli.text.frame import Frame, Row
from bertcli.text.pieces import needs_no_blank
from bertcli.text.tokenizer import Tokenizer


@dataclass(frozen=True, slots=True)
class Word:
    """A word, and its tokens in a row.

    Attributes:
        text: as it was written.
        tokens: the positions of its pieces in the row, at least one.
        segment: 0 in the first text of the row, 1 in the second.
    """

    text: str
    tokens: range
    segment: int


@dataclass(frozen=True)
class ReadRow:
    """A row, and the words in it; the other tokens are special.

    `dropped`: tokens of the texts that are not in the row, because it was full.
    """

    row: Row
    words: tuple[Word, ...]
    dropped: int


def read_texts(tokenizer: Tokenizer, texts: Sequence[str], max_length: int) -> ReadRow:
    """The row of one text or two, cut to `max_length` tokens as `Frame.fit` does."""
    placed = tokenizer.encode_with_spans(texts)
    frame, ids = tokenizer.frame, [each.ids for each in placed]
    row = frame.fit(ids[0], ids[1] if len(ids) > 1 else None, max_length)
    words = [
        word
        for segment, (text, each, tokens) in enumerate(zip(texts, placed, _places(row, frame), strict=False))
        for word in split_words(text, each.spans[: len(tokens)], tokens.start, segment=segment)
    ]
    full = sum(map(len, ids)) + frame.cost(len(ids) > 1)
    return ReadRow(row, tuple(words), full - row.length)


def read_item(item: Item, number: int, example: Example, tokenizer: Tokenizer) -> ReadRow:
    """The row `number` of an item that a task made of `example`; of choices, the number of the choice."""
    row = item.rows[number]
    if isinstance(example, TaggedExample):
        return ReadRow(row, tuple(_tagged_words(item, example, tokenizer)), item.dropped)
    first, second = _places(row, tokenizer.frame)
    a, *others = example.texts
    parts = [(a, first, 0, 0)]
    if isinstance(example, ChoiceExample):
        choice = example.choices[number]
        kept = min(len(tokenizer.encode(choice)), len(second))  # of the two, the text is cut first
        middle = second.stop - kept
        parts.append((example.text_b or "", range(second.start, middle), 0, 1))
        parts.append((choice, range(middle, second.stop), 0, 1))
    elif isinstance(example, QuestionExample):
        passage: Passage = item.layout
        parts.append((example.context, second, passage.window.start, 1))
    elif others:
        parts.append((others[0], second, 0, 1))
    placed = tokenizer.encode_with_spans([text for text, *_ in parts])
    words = [
        word
        for (text, tokens, skip, segment), each in zip(parts, placed, strict=True)
        for word in split_words(text, each.spans[skip : skip + len(tokens)], tokens.start, segment=segment)
    ]
    return ReadRow(row, tuple(words), item.dropped)


def split_words(text: str, spans: NDArray[np.int32], first: int, segment: int = 0) -> Iterator[Word]:
    """The words of pieces, whose places in the text are `spans` and whose positions in a row begin at
    `first`.

    Words are those of `examples.words.word_spans`. In scripts without blanks between words each piece is one,
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
    """Whether a piece that begins at `start`, after one that ends at `before`, is a word without a blank."""
    if start < before or start == len(text) or unicodedata.category(text[start]).startswith("M"):
        return False
    return needs_no_blank(text[start]) or needs_no_blank(text[before - 1 : before])


def _places(row: Row, frame: Frame) -> tuple[range, range]:
    """The positions of the tokens of both texts; special tokens are between them, and in no text."""
    special, start = frame.special_ids, frame.a_starts
    stop = next(place for place in range(start, row.length) if row.ids[place] in special)
    return range(start, stop), range(frame.b_starts(stop - start), row.length - len(frame.suffix))


def _tagged_words(item: Item, example: TaggedExample, tokenizer: Tokenizer) -> Iterator[Word]:
    """The words of a window, also those that another window predicts."""
    layout: WindowWords = item.layout
    window = _places(item.rows[0], tokenizer.frame)[0]
    bounds = np.cumsum([0, *map(len, tokenizer.encode_words(example.words))])
    bounds += layout.positions[0] - bounds[layout.words[0]]
    for text, start, stop in zip(example.words, bounds.tolist(), bounds[1:].tolist(), strict=False):
        if tokens := range(max(start, window.start), min(stop, window.stop)):
            yield Word(text, tokens, 0)
