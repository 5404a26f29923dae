"""Sampled lines of a batch -> their token ids. Imported only if there is a tokenizer."""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bertcli.text.tokenizer import Tokenizer
from bertcli.text.word_cache import WordCache


@dataclass(frozen=True)
class TokenizedLines:
    """The tokens of the sampled lines of a batch.

    Attributes:
        ids: uint32 [tokens].
        lengths: uint32 [S]; tokens of each sentence that has any.
        tokens, sentences, dropped: int64 [P]; in each piece: tokens, sentences with and without tokens.
        moments: float64 [5]; sums of t, w, t^2, tw, w^2 over the sampled lines, where t is a line's tokens
            and w its words. The error of the ratio t / w follows from them.
    """

    ids: NDArray[np.uint32]
    lengths: NDArray[np.uint32]
    tokens: NDArray[np.int64]
    sentences: NDArray[np.int64]
    dropped: NDArray[np.int64]
    moments: NDArray[np.float64]

    def pieces(self) -> list[tuple[NDArray[np.uint32], NDArray[np.uint32]]]:
        """Ids and lengths of each piece."""
        ids = np.split(self.ids, np.cumsum(self.tokens)[:-1])
        return list(zip(ids, np.split(self.lengths, np.cumsum(self.sentences)[:-1]), strict=True))


class LineTokenizer:
    """Tokenizes the sentences of lines as the build of the store does."""

    def __init__(self, tokenizer: Tokenizer):
        self._cache = WordCache(tokenizer)

    def __call__(
        self, lines: Sequence[list[str]], words: Sequence[int], pieces: array[int], num_pieces: int
    ) -> TokenizedLines:
        """Of each sampled line, `lines`: its sentences; `words`: their number; `pieces`: where it belongs."""
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
