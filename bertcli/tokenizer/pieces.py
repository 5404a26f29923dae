"""How each kind of tokenizer writes its pieces: where a word begins, and what people read."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import tokenizers
from numpy.typing import NDArray
from tokenizers import decoders, models

from bertcli.system.errors import UserError

BLANK = "▁"
"""Stands for the blank before a word: in Unigram's pieces, and in what people read of byte-level ones."""
_BYTE_BLANK = "Ġ"
_WITHOUT_BLANKS = (
    *((0x0E00, 0x0EFF), (0x1000, 0x109F), (0x1780, 0x17FF)),  # Thai, Lao; Burmese; Khmer
    *((0x2E80, 0x2FDF), (0x3040, 0x30FF), (0x3400, 0x4DBF), (0x4E00, 0x9FFF), (0xF900, 0xFAFF)),
    (0x20000, 0x3FFFF),
)
"""Code points, first and last: after the first line, Chinese and Japanese."""


@dataclass(frozen=True)
class Spelling:
    """The spelling of the pieces of a vocabulary.

    Attributes:
        prefix: the beginning of pieces that continue a word; "" where the others are marked.
        blank: the beginning of pieces that begin a word; "" where the others are marked.
    """

    prefix: str
    blank: str

    def continues(self, piece: str) -> bool:
        """Whether a piece continues the word before it. In scripts without blanks, each piece is a word."""
        if self.prefix:
            return piece.startswith(self.prefix)
        return not piece.startswith(self.blank) and not needs_no_blank(self.readable(piece))

    def join(self, pieces: Iterable[str]) -> str:
        """The text of pieces, for people."""
        if self.prefix:
            return " ".join(pieces).replace(f" {self.prefix}", "")
        text = _bytes_to_text(pieces) if self.blank == _BYTE_BLANK else "".join(pieces).replace(BLANK, " ")
        return text.strip()

    def readable(self, piece: str) -> str:
        """A piece for people, `▁` for the blank before a word; `�` for bytes that are no full character."""
        if self.blank != _BYTE_BLANK:
            return piece
        text = _bytes_to_text([piece])
        return BLANK + text[1:] if text.startswith(" ") else text


def spelling_of(backend: tokenizers.Tokenizer, where: str) -> Spelling:
    """The spelling of a tokenizer. Raises `UserError` for an unsupported kind."""
    model = backend.model
    if isinstance(model, models.WordPiece):
        return Spelling(model.continuing_subword_prefix, "")
    if isinstance(model, models.Unigram):
        return Spelling("", BLANK)
    if isinstance(model, models.BPE) and "ByteLevel(" in str(backend.pre_tokenizer):
        return Spelling("", _BYTE_BLANK)
    kind = "BPE without bytes" if isinstance(model, models.BPE) else type(model).__name__
    raise UserError(
        f"{where}: a {kind} tokenizer, which bertcli does not support. Give a WordPiece, a byte-level BPE "
        "or a Unigram tokenizer"
    )


def check_special(backend: tokenizers.Tokenizer, names: Mapping[str, str], where: str) -> None:
    """Raise `UserError` where a tokenizer other than WordPiece lacks a special token that rows need."""
    needed = {role: name for role, name in names.items() if role != "unk_token"}
    missing = [f"{role} {name}" for role, name in needed.items() if backend.token_to_id(name) is None]
    if missing:
        raise UserError(
            f"{where}: the vocabulary lacks {', '.join(missing)}. Name the tokens that the model was trained "
            "with in tokenizer_config.json, or copy the model's own files"
        )


def needs_no_blank(text: str) -> bool:
    """Whether a text begins with a letter of a script without blanks between words; a mark does not."""
    code = ord(text[0]) if text else 0
    is_in = any(first <= code <= last for first, last in _WITHOUT_BLANKS)
    return is_in and not unicodedata.category(text[0]).startswith("M")


def _bytes_to_text(pieces: Iterable[str]) -> str:
    return decoders.ByteLevel().decode(list(pieces))


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
