"""The vocabulary files of a model type -> the pipeline that its transformers class builds from them."""

from __future__ import annotations

import json
import struct
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import tokenizers
from tokenizers import AddedToken, Regex, decoders, models, normalizers, pre_tokenizers, processors

from bertcli.families.tokenizers import TokenizerFacts
from bertcli.system.errors import UserError
from bertcli.system.files import has_file, plain_bytes
from bertcli.system.formats import read_fields, read_json
from bertcli.tokenizer.limits import check_charsmap, check_ids, check_scores
from bertcli.tokenizer.wordpiece import usual_rows

Names = Mapping[str, str]
Config = Mapping[str, Any]


def build(file: Path, facts: TokenizerFacts, names: Names, config: Config) -> tokenizers.Tokenizer:
    """The pipeline of `file`, which is one of `facts.files`, and of its companions in the folder.

    Args:
        names: the special tokens by role.
        config: the content of `tokenizer_config.json`, for its options.

    Raises:
        UserError: a file is missing or damaged.
    """
    if facts.kind == "BPE":
        vocabulary, merges = _read_bpe(*(file.with_name(name) for name in facts.files))
        backend = byte_level(vocabulary, merges, bool(config.get("add_prefix_space", False)))
    else:
        backend = _unigram(file, read_spm_model(file), facts, names=names, config=config)
    mask = config.get("mask_token")
    strips = mask.get("lstrip", False) if isinstance(mask, Mapping) else facts.mask_strips
    add_special(backend, facts, names, mask_strips=strips)
    return backend


def add_special(
    backend: tokenizers.Tokenizer, facts: TokenizerFacts, names: Names, mask_strips: bool
) -> None:
    """Register the special tokens of a model type, and set the post-processor that makes its rows."""
    plain = [name for role, name in names.items() if role != "mask_token"]
    tokens = [AddedToken(name, normalized=False, special=True) for name in plain]
    tokens.sort(key=lambda token: backend.token_to_id(token.content) or 0)
    backend.add_special_tokens(tokens)
    backend.add_special_tokens(
        [AddedToken(names["mask_token"], lstrip=mask_strips, normalized=False, special=True)]
    )
    backend.post_processor = rows(backend, facts, names)


def byte_level(
    vocabulary: Mapping[str, int], merges: Sequence[tuple[str, str]], add_prefix_space: bool
) -> tokenizers.Tokenizer:
    """Byte-level BPE as in GPT-2, without its special tokens."""
    backend = tokenizers.Tokenizer(
        models.BPE(dict(vocabulary), list(merges), continuing_subword_prefix="", end_of_word_suffix="")
    )
    backend.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space)
    backend.decoder = decoders.ByteLevel()
    return backend


def unigram(
    pieces: Sequence[tuple[str, float]],
    unk_id: int,
    before: Sequence[pre_tokenizers.PreTokenizer],
    scheme: Literal["always", "first", "never"],
) -> tokenizers.Tokenizer:
    """A Unigram that writes blanks as `▁`, without its normalizer and its special tokens.

    Args:
        pieces: the pieces with the logarithms of their probabilities.
        before: the pre-tokenizers that cut a text first.
        scheme: the parts of a text that get a blank at their beginning.
    """
    backend = tokenizers.Tokenizer(models.Unigram(list(pieces), unk_id, byte_fallback=False))
    backend.pre_tokenizer = pre_tokenizers.Sequence(
        [*before, pre_tokenizers.Metaspace(prepend_scheme=scheme)]
    )
    backend.decoder = decoders.Metaspace(prepend_scheme=scheme)
    return backend


def rows(
    backend: tokenizers.Tokenizer, facts: TokenizerFacts, names: Names
) -> processors.PostProcessor | None:
    """The post-processor that makes the rows of a model type; None if `backend` lacks a token for them."""
    cls, sep = names["cls_token"], names["sep_token"]
    cls_id, sep_id = backend.token_to_id(cls), backend.token_to_id(sep)
    if cls_id is None or sep_id is None:
        return None
    if facts.separators == 1:
        return usual_rows((cls, cls_id), (sep, sep_id))
    if facts.kind == "BPE":
        prefix = getattr(backend.pre_tokenizer, "add_prefix_space", False)
        return processors.RobertaProcessing((sep, sep_id), (cls, cls_id), add_prefix_space=prefix)
    return processors.TemplateProcessing(
        single=f"{cls} $A {sep}",
        pair=f"{cls} $A {sep} {sep} $B {sep}",
        special_tokens=[(cls, cls_id), (sep, sep_id)],
    )


def _read_bpe(vocabulary: Path, merges: Path) -> tuple[dict[str, int], list[tuple[str, str]]]:
    if not has_file(merges):
        raise UserError(f"{merges}: missing; {vocabulary.name} needs it. Copy it from the model's folder")
    ids = read_json(vocabulary)
    check_ids(ids, str(vocabulary))
    pairs = []
    try:
        lines = plain_bytes(merges).decode("utf-8").split("\n")
    except UnicodeDecodeError as error:
        raise UserError(f"{merges}: not UTF-8 at byte {error.start}. Copy or download it again") from None
    for number, line in enumerate(lines, start=1):
        if (number == 1 and line.startswith("#version")) or not line.strip():
            continue
        parts = tuple(line.rstrip("\r").split(" "))
        if len(parts) != 2 or not {*parts, "".join(parts)} <= ids.keys():
            raise UserError(
                f"{merges}: line {number} is not two pieces of {vocabulary.name} that make a third: "
                f"{line!r}. Copy or download both files again"
            )
        pairs.append(parts)
    return ids, pairs


def _unigram(
    file: Path, spm: SpmModel, facts: TokenizerFacts, names: Names, config: Config
) -> tokenizers.Tokenizer:
    first = [(names.get(piece, piece), -100.0 if piece == "<unk>NOTUSED" else 0.0) for piece in facts.first]
    pieces = [*first, *spm.pieces[facts.replaced :]]
    if facts.mask_piece:
        pieces.append((names["mask_token"], 0.0))
    places = {piece: place for place, (piece, _) in enumerate(pieces)}
    if names["unk_token"] not in places:
        raise UserError(
            f"{file}: has no piece {names['unk_token']}, the unknown token. Set unk_token in "
            "tokenizer_config.json to the piece that the model was trained with"
        )
    scheme = "always" if config.get("add_prefix_space", True) else ("never" if facts.words_first else "first")
    parts: list[pre_tokenizers.PreTokenizer] = []
    if facts.words_first:
        parts.append(pre_tokenizers.WhitespaceSplit())
    elif config.get("split_by_punct"):
        parts.append(pre_tokenizers.Punctuation(behavior="isolated"))
    backend = unigram(pieces, places[names["unk_token"]], parts, scheme=scheme)
    backend.normalizer = _normalizer(spm.charsmap, facts, config)
    for (piece, _), kind in zip(spm.pieces, spm.types, strict=True):
        if kind in (CONTROL, USER_DEFINED):
            backend.add_tokens([AddedToken(piece, normalized=False, special=kind == CONTROL)])
    return backend


def _normalizer(charsmap: bytes, facts: TokenizerFacts, config: Config) -> normalizers.Normalizer:
    lowercase = config.get("do_lower_case", facts.lowercase)
    steps: dict[str, list[normalizers.Normalizer]] = {
        "quotes": [normalizers.Replace("``", '"'), normalizers.Replace("''", '"')],
        "accents": [] if config.get("keep_accents") else [normalizers.NFKD(), normalizers.StripAccents()],
        "lowercase": [normalizers.Lowercase()] if lowercase else [],
        "charsmap": [normalizers.Precompiled(charsmap)] if charsmap else [],
        "blanks": [
            normalizers.Replace(Regex(r"\s{2,}|[\n\r\t]"), " "),
            normalizers.NFC(),
            normalizers.Strip(left=False, right=True),
        ],
    }
    return normalizers.Sequence([part for step in facts.steps for part in steps[step]])


def is_rebuilt(backend: tokenizers.Tokenizer, facts: TokenizerFacts, names: Names) -> bool:
    """True if the class `facts.written` builds `backend` from its vocabulary and `add_prefix_space`."""
    prefix = getattr(backend.pre_tokenizer, "add_prefix_space", False)
    built = byte_level({}, [], prefix)
    built.post_processor = rows(backend, facts, names)
    return _without_vocabulary(built) == _without_vocabulary(backend)


def _without_vocabulary(backend: tokenizers.Tokenizer) -> dict[str, Any]:
    pipeline = json.loads(backend.to_str())
    for key in ("vocab", "merges"):
        pipeline["model"].pop(key, None)
    return {**pipeline, "added_tokens": None}


_PIECES, _TRAINER, _NORMALIZER = 1, 2, 3
_TEXT, _SCORE, _TYPE = 1, 2, 3
_MODEL_TYPE, _CHARSMAP = 3, 2
_UNIGRAM = 1
_KINDS = {2: "BPE", 3: "word", 4: "character"}
CONTROL, USER_DEFINED = 3, 4
"""Types of pieces in a SentencePiece file: special tokens, and tokens that are never cut in a text."""


@dataclass(frozen=True)
class SpmModel:
    """The content of a SentencePiece file.

    Attributes:
        pieces: (piece, logarithm of its probability); the place in the list is the id in the file.
        types: the type of each piece.
        charsmap: a table that normalizes characters, for `normalizers.Precompiled`; may be empty.
    """

    pieces: list[tuple[str, float]]
    types: list[int]
    charsmap: bytes


def read_spm_model(path: Path) -> SpmModel:
    """Read a Unigram model. Raises `UserError` if the file is damaged or of another kind."""
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
