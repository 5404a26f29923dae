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
from tokenizers import pre_tokenizers

from bertcli.errors import UserError
from bertcli.text import wordpiece
from bertcli.text.added_tokens import with_special
from bertcli.text.frame import Frame, read_frame
from bertcli.text.panics import may_panic, survive
from bertcli.text.tokenizer_class import obey_folder
from bertcli.text.tokenizer_files import Normalization, bert_part, find_tokenizer_file, read_vocabulary

Result = TypeVar("Result")
_LARGEST = 1 << 24
"""Entries of a vocabulary; each id takes memory, whether it has a piece or not."""


@dataclass(frozen=True, slots=True)
class PlacedPieces:
    """The token ids of a text, and the place of each in it.

    Attributes:
        ids: without special tokens.
        spans: int32 [tokens, 2]; start and end of each, in characters of the text.
    """

    ids: list[int]
    spans: NDArray[np.int32]


class Tokenizer:
    """BERT's tokenizer: `BertNormalizer`, `BertPreTokenizer`, WordPiece (Devlin et al. 2019, section 3).

    Also works with another normalizer, pre-tokenizer or post-processor. Tokens that are registered besides
    the vocabulary are never cut in a text; the five special ones are plain text there.

    Attributes:
        vocab_size: entries of the vocabulary.
        kind: the name of the model that cuts words, in the tokenizers library.
        frame: the special tokens around texts in a row.
        pad_id, unk_id, mask_id: ids of special tokens with other roles.
        mask_token: the text that a user writes for a mask.
        special_ids: of all special tokens, ascending.
        continuation: bool [vocab_size]; true where a piece continues a word (`##ing`).
        prefix: the beginning of such a piece.
        lowercase: whether letters lose their case.
        strip_accents: of BERT's normalizer, None: as `lowercase`; of another normalizer always None.
        strips_accents: whether letters lose their marks, by any normalizer.
        splits_at_blanks: whether the ids of a text are those of its blank-separated words, one after the
            other.
        hash: SHA-256 of everything that decides the ids, hexadecimal.
    """

    def __init__(self, backend: tokenizers.Tokenizer, where: str, names: Mapping[str, str] = wordpiece.NAMES):
        """Wrap a WordPiece tokenizer of the library.

        Args:
            where: the name in messages.
            names: the special tokens by role (`wordpiece.NAMES`).

        Raises:
            UserError: the model is not WordPiece, lacks a special token, or makes rows of an unsupported
                form.
        """
        wordpiece.check(backend, names, where)
        backend.no_truncation()
        backend.no_padding()
        added = list(backend.get_added_tokens_decoder().values())
        own = set(names.values())
        self._names, self._where = names, where
        self._special = {token.content for token in added if token.special} - own
        if self._special:
            backend = with_special(backend, self._special, False)
        backend.encode_special_tokens = True  # "[MASK]" in a text is three tokens of plain text
        self._backend = backend
        vocabulary = backend.get_vocab(with_added_tokens=True)
        self.vocab_size = max(vocabulary.values()) + 1
        if self.vocab_size > _LARGEST:
            raise UserError(
                f"{where}: has the id {self.vocab_size - 1:,}; ids up to {_LARGEST - 1:,} are supported"
            )
        ids = {role: vocabulary[token] for role, token in names.items()}
        self.pad_id, self.unk_id, self.mask_id = (ids[f"{role}_token"] for role in ("pad", "unk", "mask"))
        self.kind = type(backend.model).__name__
        self.mask_token = names["mask_token"]
        cls_id, sep_id = ids["cls_token"], ids["sep_token"]
        usual = Frame((cls_id,), (sep_id,), (sep_id,), two_segments=True)
        self.frame = read_frame(backend, where) or usual
        if self.frame == usual:  # the same hash for the same rows, however the file writes them
            tokens = ((names["cls_token"], cls_id), (names["sep_token"], sep_id))
            backend.post_processor = wordpiece.usual_rows(*tokens)
        self.special_ids = tuple(sorted({*ids.values(), *self.frame.special_ids}))
        self.prefix = backend.model.continuing_subword_prefix
        self.continuation = np.zeros(self.vocab_size, dtype=np.bool_)
        self.continuation[[i for token, i in vocabulary.items() if token.startswith(self.prefix)]] = True
        pipeline = json.loads(backend.to_str())
        is_usual = self.frame == usual and names == wordpiece.NAMES and not wordpiece.differences(pipeline)
        self._class = wordpiece.REBUILDS if is_usual else wordpiece.OBEYS
        self._may_panic = may_panic(pipeline)
        capital, accented = ("", "")
        normalizer = backend.normalizer
        if normalizer is not None:
            normalize = normalizer.normalize_str
            capital, accented = self._survive(lambda: [normalize(letter) for letter in "Aé"])
        self.lowercase, self.strips_accents = capital == "a", accented == "e"
        normalizer = bert_part(normalizer)
        self.strip_accents: bool | None = getattr(normalizer, "strip_accents", None)
        self.splits_at_blanks = (
            normalizer is not None
            and isinstance(backend.pre_tokenizer, pre_tokenizers.BertPreTokenizer)
            and not {token.content for token in added} - own
        )
        canonical = json.dumps(pipeline, sort_keys=True, ensure_ascii=True, separators=(",", ":"))
        self.hash = hashlib.sha256(canonical.encode()).hexdigest()

    @classmethod
    def load(cls, path: str | Path, lowercase: bool = True, strip_accents: bool | None = None) -> Tokenizer:
        """Read a `vocab.txt`, a `tokenizer.json`, or a folder that holds one of them.

        `lowercase` and `strip_accents` apply to a bare `vocab.txt` only: a `tokenizer.json` has its own, and
        a folder has them in `tokenizer_config.json`; it is read as transformers reads it. Raises `UserError`
        where there is no tokenizer, it is not BERT's, or files disagree.
        """
        file, normalization = find_tokenizer_file(Path(path), Normalization(lowercase, strip_accents))
        if file.suffix == ".json":
            backend = survive(lambda: _read_json(file), str(file), quietly=True)
        else:
            backend = wordpiece.build(read_vocabulary(file), normalization)
        return cls(backend, str(file), wordpiece.NAMES if file == Path(path) else obey_folder(backend, file))

    @classmethod
    def from_vocabulary(
        cls, tokens: Sequence[str], normalization: Normalization, where: str = "the vocabulary"
    ) -> Tokenizer:
        """The tokenizer of a list of pieces; a piece's id is its place."""
        return cls(wordpiece.build(tokens, normalization), where)

    def encode(self, text: str) -> list[int]:
        """The ids of one text. No special tokens."""
        return self._survive(lambda: self._backend.encode(text, add_special_tokens=False)).ids

    def encode_batch(self, texts: Sequence[str]) -> list[list[int]]:
        """The ids of each text, without special tokens, on all cores."""
        encodings = self._survive(
            lambda: self._backend.encode_batch_fast(list(texts), add_special_tokens=False)
        )
        return [encoding.ids for encoding in encodings]

    def encode_with_spans(self, texts: Sequence[str]) -> list[PlacedPieces]:
        """As `encode_batch`, with the place of every piece in its text.

        An accent that is a character of its own, and that normalization removes, belongs to no piece.
        """
        encodings = self._survive(lambda: self._backend.encode_batch(list(texts), add_special_tokens=False))
        return [
            PlacedPieces(encoding.ids, np.array(encoding.offsets, np.int32).reshape(-1, 2))
            for encoding in encodings
        ]

    def decode(self, ids: Iterable[int]) -> str:
        """Readable text of ids: pieces joined to words, no blank before punctuation, special tokens kept."""
        return self._backend.decode([int(i) for i in ids], skip_special_tokens=False)

    def token(self, token_id: int) -> str:
        """The piece of an id. Raises `UserError` for an id outside the vocabulary."""
        token = self._backend.id_to_token(int(token_id)) if 0 <= token_id < self.vocab_size else None
        if token is None:
            raise UserError(f"token id {token_id} is outside the vocabulary of {self.vocab_size:,} entries")
        return token

    def join(self, tokens: Iterable[str]) -> str:
        """Pieces with blanks between words, for people."""
        return " ".join(tokens).replace(f" {self.prefix}", "")

    def save(self, folder: Path, model_max_length: int = 512) -> None:
        """Write `vocab.txt`, `tokenizer.json` and `tokenizer_config.json`, as transformers reads them.

        Reads the files again; raises `UserError` if they do not give the same ids.
        """
        folder.mkdir(parents=True, exist_ok=True)
        names = [self._backend.id_to_token(i) for i in range(self.vocab_size)]
        # An id without a piece still needs a line: the line's number is the id.
        lines = [f"[unused-id-{i}]" if name is None else name for i, name in enumerate(names)]
        (folder / "vocab.txt").write_bytes("".join(f"{line}\n" for line in lines).encode())
        backend = with_special(self._backend, self._special, True) if self._special else self._backend
        pretty = json.dumps(json.loads(backend.to_str()), ensure_ascii=False, indent=1)
        (folder / "tokenizer.json").write_bytes(f"{pretty}\n".encode())
        config = json.dumps(self._transformers_config(model_max_length), ensure_ascii=False, indent=2)
        (folder / "tokenizer_config.json").write_bytes(f"{config}\n".encode())
        if Tokenizer.load(folder).hash != self.hash:
            raise UserError(
                f"{folder}: the tokenizer of {self._where} would give other ids once saved. Give one whose "
                "tokenizer.json the tokenizers library wrote"
            )

    def _survive(self, encode: Callable[[], Result]) -> Result:
        return survive(encode, self._where, quietly=self._may_panic)

    def _transformers_config(self, model_max_length: int) -> Mapping[str, Any]:
        """`tokenizer_config.json`; a class that reads `tokenizer.json` alone ignores BERT's options in it."""
        options: dict[str, Any] = {}
        if (bert := bert_part(self._backend.normalizer)) is not None:
            options = {
                "do_lower_case": bert.lowercase,
                "strip_accents": bert.strip_accents,
                "tokenize_chinese_chars": bert.handle_chinese_chars,
            }
        if self._class != wordpiece.REBUILDS:  # that class gives segment ids by itself
            options["model_input_names"] = ["input_ids", "token_type_ids", "attention_mask"]
        if self._special:
            options["additional_special_tokens"] = sorted(self._special)
        return {
            "tokenizer_class": self._class,
            **options,
            "model_max_length": model_max_length,
            **self._names,
        }


def _read_json(file: Path) -> tokenizers.Tokenizer:
    try:
        return tokenizers.Tokenizer.from_file(str(file))
    except Exception as error:  # the library raises a bare Exception, with the reason in words
        raise UserError(f"{file}: not a tokenizer.json of the tokenizers library: {error}") from None
