"""A WordPiece tokenizer of given pieces, without training."""

from __future__ import annotations

from collections.abc import Sequence

from bertcli.tokenizer.tokenizer import Tokenizer
from bertcli.tokenizer.wordpiece import Normalization, build


def wordpiece(pieces: Sequence[str], normalization: Normalization = Normalization()) -> Tokenizer:
    """BERT's tokenizer; a piece's id is its place in the list."""
    return Tokenizer(build(pieces, normalization), "the vocabulary")
