"""A SentencePiece model file -> its pieces; the fields are those of sentencepiece_model.proto."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from bertcli.errors import UserError
from bertcli.files import plain_bytes
from bertcli.text.limits import check_charsmap, check_scores
from bertcli.text.protobuf import read_fields

_PIECES, _TRAINER, _NORMALIZER = 1, 2, 3
_TEXT, _SCORE, _TYPE = 1, 2, 3
_MODEL_TYPE, _CHARSMAP = 3, 2
_UNIGRAM = 1
_KINDS = {2: "BPE", 3: "word", 4: "character"}
CONTROL, USER_DEFINED = 3, 4
"""Types of pieces: special tokens, and tokens that are never cut in a text."""


@dataclass(frozen=True)
class SpmModel:
    """The content of the file.

    Attributes:
        pieces: (piece, logarithm of its probability); the place is the id in the file.
        types: of each piece.
        charsmap: a table that normalizes characters, for `normalizers.Precompiled`; may be empty.
    """

    pieces: list[tuple[str, float]]
    types: list[int]
    charsmap: bytes


def read_spm_model(path: Path) -> SpmModel:
    """Read a Unigram model. Raises `UserError` where the file is damaged or of another kind."""
    try:
        pieces, types, model_type, charsmap = [], [], _UNIGRAM, b""
        for number, value in read_fields(plain_bytes(path)):
            if number == _PIECES:
                piece = dict(_message(value))
                pieces.append((_bytes(piece[_TEXT]).decode(), _float(piece.get(_SCORE, 0))))
                types.append(_number(piece.get(_TYPE, 1)))
            elif number == _TRAINER:
                model_type = _number(dict(_message(value)).get(_MODEL_TYPE, _UNIGRAM))
            elif number == _NORMALIZER:
                charsmap = _bytes(dict(_message(value)).get(_CHARSMAP, b""))
    except OSError as error:
        raise UserError(f"{path}: cannot be read: {error.strerror}") from None
    except (ValueError, KeyError) as error:
        raise UserError(f"{path}: not a SentencePiece model ({error}). Copy or download it again") from None
    if model_type != _UNIGRAM:
        raise UserError(
            f"{path}: a SentencePiece model of the kind {_KINDS.get(model_type, model_type)}; only Unigram "
            "is supported. Give a folder with the model's tokenizer.json"
        )
    if not pieces:
        raise UserError(f"{path}: a SentencePiece model without pieces. Copy or download it again")
    check_scores(pieces, str(path))
    if charsmap:
        check_charsmap(charsmap, str(path))
    return SpmModel(pieces, types, charsmap)


def _message(value: int | bytes) -> Iterator[tuple[int, int | bytes]]:
    return read_fields(_bytes(value))


def _bytes(value: int | bytes) -> bytes:
    if isinstance(value, int):
        raise ValueError("a number in place of a message or text")
    return value


def _number(value: int | bytes) -> int:
    if not isinstance(value, int):
        raise ValueError("text in place of a number")
    return value


def _float(value: int | bytes) -> float:
    return struct.unpack("<f", (_number(value) & 0xFFFFFFFF).to_bytes(4, "little"))[0]
