"""Sentences -> the tokenizer's own ids, many times faster, because each distinct word is tokenized once.

Most normalizers work character by character, and most pre-tokenizers cut at white space. The ids of a text
are then those of its blank-separated words, one after the other. Text repeats its words, and a look-up costs
a fraction of tokenizing. All ids come from `tokenizers`.
"""

from __future__ import annotations

import itertools
from array import array
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bertcli.tokenizer.tokenizer import Tokenizer

MAX_WORDS = 200_000
"""The most words in the cache. Beyond that, or `MAX_CHARACTERS`, it is emptied, so that memory stays flat."""
MAX_CHARACTERS = 8_000_000


@dataclass(frozen=True)
class EncodedSentences:
    """The token ids of some sentences, one after the other.

    Attributes:
        ids: uint32 [tokens]; no special tokens.
        lengths: uint32 [S]; the number of tokens of each sentence.
    """

    ids: NDArray[np.uint32]
    lengths: NDArray[np.uint32]


class WordCache:
    """Tokenizes sentences part by part, as `Tokenizer.cut` gives them; for one thread at a time."""

    def __init__(self, tokenizer: Tokenizer):
        self.tokenizer = tokenizer
        self._forget()

    def encode(self, sentences: Sequence[str]) -> EncodedSentences:
        """The ids of each sentence, exactly as `Tokenizer.encode_batch` gives them."""
        parts = list(map(self.tokenizer.cut, sentences))
        flat = list(itertools.chain.from_iterable(parts))
        self._learn(set(flat).difference(self._numbers))
        numbers = np.fromiter(map(self._numbers.__getitem__, flat), np.int64, len(flat))
        first_parts = np.concatenate([[0], np.cumsum(np.fromiter(map(len, parts), np.int64, len(parts)))])
        table = np.frombuffer(self._ends, np.int64)
        starts, ends = table[numbers], table[numbers + 1]
        encoded = EncodedSentences(
            ids=_gather(np.frombuffer(self._ids, np.uint32), starts, ends),
            lengths=sums(ends - starts, first_parts).astype(np.uint32),
        )
        del table  # an `array` with a view on its memory cannot grow
        if len(self._numbers) > MAX_WORDS or self._characters > MAX_CHARACTERS:
            self._forget()
        return encoded

    def _learn(self, words: set[str]) -> None:
        new = list(words)
        for word, ids in zip(new, self.tokenizer.encode_batch(new), strict=True):
            self._numbers[word] = len(self._numbers)
            self._ids.extend(ids)
            self._ends.append(len(self._ids))
            self._characters += len(word)

    def _forget(self) -> None:
        self._numbers: dict[str, int] = {}
        self._ids, self._ends = array("I"), array("q", [0])
        self._characters = 0


def _gather(values: NDArray[Any], starts: NDArray[np.int64], ends: NDArray[np.int64]) -> NDArray[Any]:
    """The slices values[starts[0]:ends[0]], values[starts[1]:ends[1]], ..., concatenated."""
    lengths = ends - starts
    shift = starts - (np.cumsum(lengths) - lengths)
    return values[np.repeat(shift, lengths) + np.arange(int(lengths.sum()))]


def sums(values: NDArray[Any], bounds: NDArray[np.int64]) -> NDArray[np.int64]:
    """The sum of values[bounds[i]:bounds[i + 1]] for each i, int64; `values` are integers or bool."""
    return np.diff(np.concatenate([[0], np.cumsum(values)])[bounds])


@dataclass(frozen=True)
class TokenizedLines:
    """The tokens of the sampled lines of a batch.

    Attributes:
        ids: uint32 [tokens].
        lengths: uint32 [S]; the number of tokens of each sentence that has any.
        tokens, sentences, dropped: int64 [P]; the numbers of tokens, of sentences with tokens and of
            sentences without tokens in each piece.
        moments: float64 [5]; sums of t, w, t^2, tw, w^2 over the sampled lines, where t is a line's number of
            tokens and w its number of words. The error of the ratio t / w follows from them.
    """

    ids: NDArray[np.uint32]
    lengths: NDArray[np.uint32]
    tokens: NDArray[np.int64]
    sentences: NDArray[np.int64]
    dropped: NDArray[np.int64]
    moments: NDArray[np.float64]

    def pieces(self) -> list[tuple[NDArray[np.uint32], NDArray[np.uint32]]]:
        """The ids and lengths of each piece."""
        ids = np.split(self.ids, np.cumsum(self.tokens)[:-1])
        return list(zip(ids, np.split(self.lengths, np.cumsum(self.sentences)[:-1]), strict=True))


class LineTokenizer:
    """Tokenizes the sentences of lines as the build of the store does."""

    def __init__(self, tokenizer: Tokenizer):
        self._cache = WordCache(tokenizer)

    def __call__(
        self, lines: Sequence[list[str]], words: Sequence[int], pieces: array[int], num_pieces: int
    ) -> TokenizedLines:
        """Tokenize sampled lines. `lines` has the sentences of each line, `words` its number of words, and
        `pieces` the number of the piece to which it belongs."""
        encoded = self._cache.encode([sentence for line in lines for sentence in line])
        line_of = np.repeat(np.arange(len(lines)), [len(line) for line in lines])
        piece_of = np.array(pieces, np.int64)[line_of] if len(lines) else np.zeros(0, np.int64)
        lengths = encoded.lengths.astype(np.int64)

        def by_piece(values: NDArray[np.int64]) -> NDArray[np.int64]:
            return np.bincount(piece_of, values, minlength=num_pieces).astype(np.int64)

        t = np.bincount(line_of, lengths, minlength=len(lines))
        w = np.array(words, np.int64)
        return TokenizedLines(
            ids=encoded.ids,
            lengths=encoded.lengths[encoded.lengths > 0],
            tokens=by_piece(lengths),
            sentences=by_piece((lengths > 0).astype(np.int64)),
            dropped=by_piece((lengths == 0).astype(np.int64)),
            moments=np.array([t.sum(), w.sum(), (t * t).sum(), (t * w).sum(), (w * w).sum()]),
        )
