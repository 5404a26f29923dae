"""The spelling of pieces in each kind of tokenizer: marks of a word's beginning, and text for people."""

import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import tokenizers
from numpy.typing import NDArray
from tokenizers import decoders, models

from bertcli.system.errors import UserError

BLANK = "▁"
"""The sign for the blank before a word in Unigram's pieces, and in byte-level pieces shown to people."""
_BYTE_BLANK = "Ġ"
_WITHOUT_BLANKS = (
    *((0x0E00, 0x0EFF), (0x1000, 0x109F), (0x1780, 0x17FF)),  # Thai, Lao; Burmese; Khmer
    *((0x2E80, 0x2FDF), (0x3040, 0x30FF), (0x3400, 0x4DBF), (0x4E00, 0x9FFF), (0xF900, 0xFAFF)),
    (0x20000, 0x3FFFF),
)
"""Ranges (first, last) of code points in scripts without blanks between words. The first line holds the named
scripts; the others hold Chinese and Japanese."""


@dataclass(frozen=True)
class Spelling:
    """The spelling of the pieces of a vocabulary.

    Attributes:
        prefix: the beginning of pieces that continue a word; "" if pieces that begin a word are marked.
        blank: the beginning of pieces that begin a word; "" if pieces that continue a word are marked.
    """

    prefix: str
    blank: str

    def continues(self, piece: str) -> bool:
        """True if a piece continues a word. If `prefix` is "", pieces in scripts without blanks never do."""
        if self.prefix:
            return piece.startswith(self.prefix)
        return not piece.startswith(self.blank) and not needs_no_blank(self.readable(piece))

    def text(self, piece: str) -> str:
        """The text of a piece, without the mark of its place in a word; `�` are bytes as in `readable`."""
        return self.readable(piece).removeprefix(self.prefix or BLANK)

    def join(self, pieces: Iterable[str]) -> str:
        """The text of pieces, for people to read."""
        if self.prefix:
            return " ".join(pieces).replace(f" {self.prefix}", "")
        text = _bytes_to_text(pieces) if self.blank == _BYTE_BLANK else "".join(pieces).replace(BLANK, " ")
        return text.strip()

    def readable(self, piece: str) -> str:
        """A piece for people: `▁` is the blank before a word, `�` are bytes that are no full character."""
        if self.blank != _BYTE_BLANK:
            return piece
        text = _bytes_to_text([piece])
        return BLANK + text[1:] if text.startswith(" ") else text


def spelling_of(backend: tokenizers.Tokenizer, where: str) -> Spelling:
    """The spelling of a tokenizer's pieces. Raises `UserError` if the kind is not supported."""
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
    """Raise `UserError` if a tokenizer other than WordPiece lacks a special token that rows need."""
    needed = {role: name for role, name in names.items() if role != "unk_token"}
    missing = [f"{role} {name}" for role, name in needed.items() if backend.token_to_id(name) is None]
    if missing:
        raise UserError(
            f"{where}: the vocabulary lacks {', '.join(missing)}. Name the tokens that the model was trained "
            "with in tokenizer_config.json, or copy the model's own files"
        )


def needs_no_blank(text: str) -> bool:
    """True if a text begins with a letter, not a mark, of a script without blanks between words."""
    code = ord(text[0]) if text else 0
    is_in = any(first <= code <= last for first, last in _WITHOUT_BLANKS)
    return is_in and not unicodedata.category(text[0]).startswith("M")


def _bytes_to_text(pieces: Iterable[str]) -> str:
    return decoders.ByteLevel().decode(list(pieces))


@dataclass(frozen=True, slots=True)
class PlacedPieces:
    """The token ids of a text, and the place of each token in it.

    Attributes:
        ids: the token ids, without special tokens.
        spans: int32 [tokens, 2]; start and end of each token, in characters of the text.
        numbers: for each token the number of its word, as the pre-tokenizer cuts words.
    """

    ids: list[int]
    spans: NDArray[np.int32]
    numbers: Sequence[int | None]


def trim_places(text: str, spans: NDArray[np.int32]) -> NDArray[np.int32]:
    """The places `spans` of pieces in `text`, int32 [pieces, 2], without the white space at their edges.

    A piece may hold the blank before a word. A piece of white space alone gets an empty place at its end. The
    starts ascend, and so do the ends.
    """
    if not len(spans):
        return spans
    size = len(text)
    places = np.arange(size, dtype=np.int32)
    blank = np.fromiter((character.isspace() for character in text), np.bool_, size)
    # For each place: the start of the next visible character, and the end of the last one before it.
    next_start = np.append(np.minimum.accumulate(np.where(blank, size, places)[::-1])[::-1], size)
    last_end = np.append(0, np.maximum.accumulate(np.where(blank, 0, places + 1)))
    start = np.minimum(next_start[spans[:, 0]], spans[:, 1])
    end = np.maximum(last_end[spans[:, 1]], start)
    trimmed = np.stack([start, end], axis=1)
    return np.maximum.accumulate(trimmed, axis=0).astype(np.int32)
