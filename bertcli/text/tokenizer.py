"""A WordPiece tokenizer: text -> token ids, by the `tokenizers` library; plain text gives no special id."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import tokenizers
from numpy.typing import NDArray
from tokenizers import decoders, models, pre_tokenizers, processors

from bertcli.errors import UserError
from bertcli.text.added_tokens import SPECIAL_TOKENS, with_special
from bertcli.text.panics import may_panic, survive
from bertcli.text.tokenizer_class import NAMES, REBUILDS, class_for, obey_folder
from bertcli.text.tokenizer_files import Normalization, bert_part, find_tokenizer_file, read_vocabulary

Result = TypeVar("Result")
_LARGEST = 1 << 24
"""Entries of a vocabulary; each id has a place in memory, whether there is a piece for it or not."""


@dataclass(frozen=True, slots=True)
class PlacedPieces:
    """The token ids of a text, and where each stands in it.

    Attributes:
        ids: without [CLS] and [SEP].
        spans: int32 [tokens, 2]; start and end of each, in characters of the text.
    """

    ids: list[int]
    spans: NDArray[np.int32]


class Tokenizer:
    """BERT's tokenizer: `BertNormalizer`, `BertPreTokenizer`, WordPiece (Devlin et al. 2019, section 3).

    Another normalizer or pre-tokenizer is obeyed. Tokens that are registered besides the vocabulary are found
    whole in a text; BERT's own five special ones are plain text there.

    Attributes:
        vocab_size: entries of the vocabulary.
        pad_id, unk_id, cls_id, sep_id, mask_id: the ids of the five special tokens.
        special_ids: those five, in that order.
        continuation: bool [vocab_size]; true where a piece goes on a word (`##ing`).
        lowercase: whether letters lose their case.
        strip_accents: of BERT's normalizer, None: as `lowercase`; of another normalizer always None.
        strips_accents: whether letters lose their marks, whatever the normalizer is.
        splits_at_blanks: whether a text's ids are those of its blank-separated words in a row.
        hash: SHA-256 of all that decides the ids, hexadecimal.
    """

    def __init__(self, backend: tokenizers.Tokenizer, where: str):
        """Wrap a WordPiece tokenizer of the library; `where` is what an error names.

        Raises `UserError` where the model is another than WordPiece or lacks a special token.
        """
        if not isinstance(backend.model, models.WordPiece):
            kind = type(backend.model).__name__
            raise UserError(
                f"{where}: a {kind} tokenizer; BERT's is a WordPiece. Give a BERT tokenizer's files"
            )
        own = backend.get_vocab(with_added_tokens=False)  # where WordPiece itself looks [UNK] up
        missing = [
            token
            for token in SPECIAL_TOKENS
            if backend.token_to_id(token) is None or (token == "[UNK]" and token not in own)
        ]
        if missing:
            raise UserError(
                f"{where}: the vocabulary lacks {', '.join(missing)}; a BERT vocabulary holds "
                f"{' '.join(SPECIAL_TOKENS)}, each on a line of its own. Add what is missing, or leave "
                "tokenizer.path out to train a vocabulary"
            )
        if backend.model.unk_token != "[UNK]":
            raise UserError(
                f"{where}: what is not in the vocabulary is to be {backend.model.unk_token!r}; BERT has "
                "[UNK] there. Set unk_token to [UNK], or give a BERT tokenizer's files"
            )
        backend.no_truncation()
        backend.no_padding()
        backend.post_processor = _template(backend)
        added = list(backend.get_added_tokens_decoder().values())
        self._special = {token.content for token in added if token.special} - set(SPECIAL_TOKENS)
        if self._special:
            backend = with_special(backend, self._special, False)
        backend.encode_special_tokens = True  # "[MASK]" in a text is three tokens of plain text
        self._backend, self._where = backend, where
        vocabulary = backend.get_vocab(with_added_tokens=True)
        self.vocab_size = max(vocabulary.values()) + 1
        if self.vocab_size > _LARGEST:
            raise UserError(
                f"{where}: has the id {self.vocab_size - 1:,}; ids up to {_LARGEST - 1:,} are read"
            )
        ids = [vocabulary[token] for token in SPECIAL_TOKENS]
        self.pad_id, self.unk_id, self.cls_id, self.sep_id, self.mask_id = ids
        self.special_ids = tuple(ids)
        prefix = backend.model.continuing_subword_prefix
        self.continuation = np.zeros(self.vocab_size, dtype=np.bool_)
        self.continuation[[i for token, i in vocabulary.items() if token.startswith(prefix)]] = True
        normalizer = backend.normalizer
        pipeline = json.loads(backend.to_str())
        self._class, self._may_panic = class_for(pipeline), may_panic(pipeline)
        capital, accented = ("", "")
        if normalizer is not None:
            normalize = normalizer.normalize_str
            capital, accented = self._survive(lambda: [normalize(letter) for letter in "Aé"])
        self.lowercase, self.strips_accents = capital == "a", accented == "e"
        normalizer = bert_part(normalizer)
        self.strip_accents: bool | None = getattr(normalizer, "strip_accents", None)
        self.splits_at_blanks = (
            normalizer is not None
            and isinstance(backend.pre_tokenizer, pre_tokenizers.BertPreTokenizer)
            and not {token.content for token in added} - set(SPECIAL_TOKENS)
        )
        canonical = json.dumps(pipeline, sort_keys=True, ensure_ascii=True, separators=(",", ":"))
        self.hash = hashlib.sha256(canonical.encode()).hexdigest()

    @classmethod
    def load(cls, path: str | Path, lowercase: bool = True, strip_accents: bool | None = None) -> Tokenizer:
        """Read a `vocab.txt`, a `tokenizer.json`, or a folder that holds one of them.

        `lowercase` and `strip_accents` are for a bare `vocab.txt`: a `tokenizer.json` knows its own, and
        a folder says it in `tokenizer_config.json`; such a folder is read as transformers reads it. Raises
        `UserError` where there is no tokenizer, one that is not BERT's, or files that disagree.
        """
        file, normalization = find_tokenizer_file(Path(path), Normalization(lowercase, strip_accents))
        if file.suffix == ".json":
            backend = survive(lambda: _read_json(file), str(file), quietly=True)
        else:
            backend = _from_pieces(read_vocabulary(file), normalization)
        if file != Path(path):
            obey_folder(backend, file)
        return cls(backend, str(file))

    @classmethod
    def from_vocabulary(
        cls, tokens: Sequence[str], normalization: Normalization, where: str = "the vocabulary"
    ) -> Tokenizer:
        """The tokenizer of a list of pieces; a piece's id is its place."""
        return cls(_from_pieces(tokens, normalization), where)

    def encode(self, text: str) -> list[int]:
        """The ids of one text, without [CLS] and [SEP]."""
        return self._survive(lambda: self._backend.encode(text, add_special_tokens=False)).ids

    def encode_batch(self, texts: Sequence[str]) -> list[list[int]]:
        """The ids of each text, without [CLS] and [SEP]; on all cores."""
        encodings = self._survive(
            lambda: self._backend.encode_batch_fast(list(texts), add_special_tokens=False)
        )
        return [encoding.ids for encoding in encodings]

    def encode_with_spans(self, texts: Sequence[str]) -> list[PlacedPieces]:
        """As `encode_batch`, with the place of every piece in its text.

        An accent that normalization takes off its letter belongs to no piece where it is a character of
        its own.
        """
        encodings = self._survive(lambda: self._backend.encode_batch(list(texts), add_special_tokens=False))
        return [
            PlacedPieces(encoding.ids, np.array(encoding.offsets, np.int32).reshape(-1, 2))
            for encoding in encodings
        ]

    def decode(self, ids: Iterable[int]) -> str:
        """Readable text of ids: pieces joined to words, punctuation drawn to them, special tokens kept."""
        return self._backend.decode([int(i) for i in ids], skip_special_tokens=False)

    def token(self, token_id: int) -> str:
        """The piece of an id. Raises `UserError` for an id outside the vocabulary."""
        token = self._backend.id_to_token(int(token_id)) if 0 <= token_id < self.vocab_size else None
        if token is None:
            raise UserError(f"token id {token_id} is outside the vocabulary of {self.vocab_size:,} entries")
        return token

    def save(self, folder: Path, model_max_length: int = 512) -> None:
        """Write `vocab.txt`, `tokenizer.json` and `tokenizer_config.json`, as transformers reads them.

        What was written is read again: it gives the same ids, or `UserError` is raised.
        """
        folder.mkdir(parents=True, exist_ok=True)
        names = [self._backend.id_to_token(i) for i in range(self.vocab_size)]
        # A place without a piece still needs a line: the line's number is the id.
        lines = [f"[unused-id-{i}]" if name is None else name for i, name in enumerate(names)]
        (folder / "vocab.txt").write_bytes("".join(f"{line}\n" for line in lines).encode())
        backend = with_special(self._backend, self._special, True) if self._special else self._backend
        pretty = json.dumps(json.loads(backend.to_str()), ensure_ascii=False, indent=1)
        (folder / "tokenizer.json").write_bytes(f"{pretty}\n".encode())
        config = json.dumps(self._transformers_config(model_max_length), ensure_ascii=False, indent=2)
        (folder / "tokenizer_config.json").write_bytes(f"{config}\n".encode())
        if Tokenizer.load(folder).hash != self.hash:
            raise UserError(
                f"{folder}: the tokenizer of {self._where} cannot be saved so that it gives the same ids. "
                "Give one whose tokenizer.json the tokenizers library wrote"
            )

    def _survive(self, encode: Callable[[], Result]) -> Result:
        return survive(encode, self._where, quietly=self._may_panic)

    def _transformers_config(self, model_max_length: int) -> Mapping[str, Any]:
        """BERT's options stand there for people too where the class obeys `tokenizer.json` alone."""
        options: dict[str, Any] = {}
        if (bert := bert_part(self._backend.normalizer)) is not None:
            options = {
                "do_lower_case": bert.lowercase,
                "strip_accents": bert.strip_accents,
                "tokenize_chinese_chars": bert.handle_chinese_chars,
            }
        if self._class != REBUILDS:  # which gives segment ids by itself
            options["model_input_names"] = ["input_ids", "token_type_ids", "attention_mask"]
        if self._special:
            options["additional_special_tokens"] = sorted(self._special)
        return {"tokenizer_class": self._class, **options, "model_max_length": model_max_length, **NAMES}


def _read_json(file: Path) -> tokenizers.Tokenizer:
    try:
        return tokenizers.Tokenizer.from_file(str(file))
    except Exception as error:  # the library raises a bare Exception, with the reason in words
        raise UserError(f"{file}: not a tokenizer.json of the tokenizers library: {error}") from None


def _from_pieces(tokens: Sequence[str], normalization: Normalization) -> tokenizers.Tokenizer:
    ids = {token: i for i, token in enumerate(tokens)}
    backend = tokenizers.Tokenizer(models.WordPiece(ids, unk_token="[UNK]", max_input_chars_per_word=100))
    backend.normalizer = normalization.normalizer()
    backend.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    backend.decoder = decoders.WordPiece(prefix="##")
    special = [token for token in SPECIAL_TOKENS if token in ids]
    backend.add_special_tokens([tokenizers.AddedToken(t, special=True, normalized=False) for t in special])
    return backend


def _template(backend: tokenizers.Tokenizer) -> processors.TemplateProcessing:
    """BERT's rows, whatever the file had: they are what a model is given here."""
    return processors.TemplateProcessing(
        single="[CLS]:0 $A:0 [SEP]:0",
        pair="[CLS]:0 $A:0 [SEP]:0 $B:1 [SEP]:1",
        special_tokens=[(token, backend.token_to_id(token)) for token in ("[CLS]", "[SEP]")],
    )
