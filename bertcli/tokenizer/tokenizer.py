"""A tokenizer of any kind: text -> token ids, with the `tokenizers` library; text gives no special ids."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import TypeVar

import numpy as np
import tokenizers
from tokenizers import models

from bertcli.families.tokenizers import TOKENIZERS, TokenizerFacts
from bertcli.system.errors import UserError
from bertcli.tokenizer import encoder, wordpiece
from bertcli.tokenizer.declarations import model_facts
from bertcli.tokenizer.folder import class_options, read_pipeline
from bertcli.tokenizer.frame import Frame, read_frame
from bertcli.tokenizer.limits import LARGEST_VOCABULARY, may_panic, survive
from bertcli.tokenizer.normalize import DIVIDES_BYTES
from bertcli.tokenizer.pieces import PlacedPieces, check_special, spelling_of, trim_places
from bertcli.tokenizer.pipelines import is_rebuilt
from bertcli.tokenizer.wordpiece import OBEYS, REBUILDS, Normalization, bert_part

Result = TypeVar("Result")


class Tokenizer:
    """A WordPiece, byte-level BPE or Unigram tokenizer, such as BERT's (Devlin et al. 2019, section 3).

    The tokenizer may have any normalizer and pre-tokenizer. Other registered tokens are never cut in a text;
    the five special tokens are plain text there.

    Attributes:
        vocab_size: the number of entries of the vocabulary.
        kind: the name of the model that cuts words, in the tokenizers library.
        names: the special tokens by role.
        spelling: the marks of pieces that begin or continue a word.
        frame: the special tokens around texts in a row.
        pad_id, unk_id, mask_id: ids of special tokens with other roles. A byte-level vocabulary may have no
            unknown token; its `unk_id` is then `pad_id`, which no text yields either.
        mask_token: the text that a user writes for a mask.
        special_ids: the ids of all special tokens, ascending.
        continuation: bool [vocab_size]; true for each piece that continues a word (`##ing`; `ing` in a
            vocabulary that marks the beginnings of words).
        lowercase: true if letters lose their case.
        strip_accents: the option of BERT's normalizer (None: the value of `lowercase`); None for others.
        strips_accents: true if letters lose their marks, by any normalizer.
        marks_blanks: true if the first word of a text gets other pieces than the same word after a blank.
        hash: SHA-256 of everything that decides the ids, hexadecimal.
    """

    def __init__(self, backend: tokenizers.Tokenizer, where: str, names: Mapping[str, str] = wordpiece.NAMES):
        """Wrap a tokenizer of the library.

        Args:
            where: the name of the tokenizer in messages.
            names: the special tokens by role (`wordpiece.NAMES`).

        Raises:
            UserError: the kind is not supported, a special token is missing, an id is too large, or rows
                have an unsupported form.
        """
        self.spelling = spelling_of(backend, where)
        self.kind = type(backend.model).__name__
        check = wordpiece.check if self.kind == "WordPiece" else check_special
        check(backend, names, where)
        if isinstance(backend.model, models.BPE):
            backend.model.dropout = None  # BPE-dropout would give a text other ids each time
        backend.no_truncation()
        backend.no_padding()
        added = list(backend.get_added_tokens_decoder().values())
        own = set(names.values())
        self.names, self._where = names, where
        self._special = {token.content for token in added if token.special} - own
        if self._special:
            backend = encoder.with_special(backend, self._special, False)
        self._backend = backend
        vocabulary = backend.get_vocab(with_added_tokens=True)
        self.vocab_size = max(vocabulary.values()) + 1
        if self.vocab_size > LARGEST_VOCABULARY:
            raise UserError(
                f"{where}: has the id {self.vocab_size - 1:,}; ids up to {LARGEST_VOCABULARY - 1:,} are "
                "supported"
            )
        self._ids = {role: vocabulary[token] for role, token in names.items() if token in vocabulary}
        self.pad_id, self.mask_id = self._ids["pad_token"], self._ids["mask_token"]
        self.unk_id = self._ids.get("unk_token", self.pad_id)
        self.mask_token = names["mask_token"]
        usual = self._read_frame()
        self.special_ids = tuple(sorted({*self._ids.values(), *self.frame.special_ids}))
        self.continuation = np.zeros(self.vocab_size, dtype=np.bool_)
        whole = set() if self.spelling.prefix else {token.content for token in added}
        continues = self.spelling.continues
        self.continuation[
            [i for token, i in vocabulary.items() if continues(token) and token not in whole]
        ] = True
        pipeline = json.loads(backend.to_str())
        self._is_usual = (
            usual
            and self.kind == "WordPiece"
            and names == wordpiece.NAMES
            and not wordpiece.differences(pipeline)
        )
        self._may_panic = may_panic(pipeline)
        self._plain = encoder.PlainEncoder(backend, self._never("mask_token"))
        self._describe_normalizer()
        self._by_word = {token.content for token in added} <= own and encoder.reads_word_by_word(pipeline)
        self.marks_blanks = self.kind == "BPE" and not getattr(
            backend.pre_tokenizer, "add_prefix_space", False
        )
        self.hash = encoder.fingerprint(pipeline)

    def _read_frame(self) -> bool:
        """Set `frame`. Return true if it is BERT's."""
        names, ids = self.names, self._ids
        usual = Frame((ids["cls_token"],), (ids["sep_token"],), (ids["sep_token"],), two_segments=True)
        self.frame = read_frame(self._backend, self._where) or usual
        if self.frame == usual:  # equal rows get an equal hash, in whatever form the file writes them
            tokens = ((names[role], ids[role]) for role in ("cls_token", "sep_token"))
            self._backend.post_processor = wordpiece.usual_rows(*tokens)
        return self.frame == usual

    def _describe_normalizer(self) -> None:
        capital, accented = ("", "")
        normalizer = self._backend.normalizer
        if normalizer is not None:
            normalize = normalizer.normalize_str
            capital, accented = self._survive(lambda: [normalize(letter) for letter in "Aé"])
        self.lowercase, self.strips_accents = capital == "a", accented == "e"
        self.strip_accents: bool | None = getattr(bert_part(normalizer), "strip_accents", None)

    def _never(self, *more: str) -> dict[str, int]:
        """The special tokens that no text yields, with their ids; `more` names further roles."""
        return {self.names[role]: self._ids[role] for role in ("pad_token", "cls_token", "sep_token", *more)}

    @classmethod
    def load(cls, path: str | Path, lowercase: bool = True, strip_accents: bool | None = None) -> Tokenizer:
        """Read a `vocab.txt`, a `tokenizer.json`, or a folder that holds one of them or another vocabulary.

        A folder is read as transformers reads it. `lowercase` and `strip_accents` apply only to a bare
        `vocab.txt`: a `tokenizer.json` has its own options, a folder those of `tokenizer_config.json`. Raises
        `UserError` if there is no tokenizer, if it is not supported, or if files disagree.
        """
        return cls(*read_pipeline(Path(path), Normalization(lowercase, strip_accents)))

    def encode(self, text: str) -> list[int]:
        """The ids of one text, without special tokens."""
        return self.encode_batch([text])[0]

    def encode_batch(self, texts: Sequence[str]) -> list[list[int]]:
        """The ids of each text, without special tokens; works on all cores."""
        return [ids for ids, _ in self._survive(lambda: self._plain.encode(texts))]

    def cut(self, text: str) -> list[str]:
        """Parts of a text whose ids in sequence are the text's ids: its words if possible, else the text."""
        if not self._by_word:
            return [text]
        words = text.split(" ")
        return [text] if self.kind == "BPE" and ("" in words or DIVIDES_BYTES in text) else words

    def encode_words(self, words: Sequence[str]) -> list[list[int]]:
        """The ids of each word of texts given as words; each word is read as if it followed a blank."""
        if self.kind == "BPE":
            words = [f" {word}" if word and not word.startswith(" ") else word for word in words]
        return self.encode_batch(words)

    def encode_with_masks(self, texts: Sequence[str]) -> list[list[int]]:
        """The ids of each text, with `mask_id` for each `mask_token`; other special tokens are plain text."""
        return [ids for ids, _ in self._survive(lambda: self._masking.encode(texts))]

    @cached_property
    def _masking(self) -> encoder.PlainEncoder:
        return encoder.PlainEncoder(encoder.with_text_token(self._backend, self.mask_token), self._never())

    @cached_property
    def mask_strips(self) -> bool:
        """True if a mask absorbs the blank before it: the ids are equal with and without that blank."""
        with_blank, without = self.encode_with_masks([f"a {self.mask_token}", f"a{self.mask_token}"])
        return with_blank == without

    def encode_with_spans(self, texts: Sequence[str], masks: bool = False) -> list[PlacedPieces]:
        """The ids of each text, and the place of every piece in its text, without white space at its edges.

        With `masks` the ids are those of `encode_with_masks`. Starts and ends ascend. Several pieces of one
        character (bytes, or a character that normalization expands) all have the place of that character. A
        piece of white space alone has an empty place. An accent that is a separate character, and that
        normalization removes, belongs to no piece.
        """
        encoded = self._survive(lambda: (self._masking if masks else self._plain).encode(texts, places=True))
        placed: list[PlacedPieces] = []
        for text, (ids, encoding) in zip(texts, encoded, strict=True):
            spans = np.array(encoding.offsets, np.int32).reshape(-1, 2)
            spans = trim_places(text, spans) if masks or self.kind != "WordPiece" else spans
            placed.append(PlacedPieces(ids, spans, numbers=encoding.word_ids))
        return placed

    @property
    def backend(self) -> tokenizers.Tokenizer:
        """The library's tokenizer, as its file defines it; callers must not change it."""
        return encoder.with_special(self._backend, self._special, True) if self._special else self._backend

    def decode(self, ids: Iterable[int]) -> str:
        """The readable text of ids: joined words, no blank before punctuation, special tokens kept."""
        return self._backend.decode([int(i) for i in ids], skip_special_tokens=False)

    def token(self, token_id: int) -> str:
        """The piece of an id. Raises `UserError` if the id is outside the vocabulary."""
        token = self._backend.id_to_token(int(token_id)) if 0 <= token_id < self.vocab_size else None
        if token is None:
            raise UserError(f"token id {token_id} is outside the vocabulary of {self.vocab_size:,} entries")
        return token

    def readable(self, token_id: int) -> str:
        """The piece of an id for people: its text, with `▁` for the blank before a word, or with its prefix.

        Bytes that are no full character appear as `�`. Raises `UserError` as `token` does.
        """
        return self.spelling.readable(self.token(token_id))

    def join(self, tokens: Iterable[str]) -> str:
        """The text of pieces with blanks between words, for people."""
        return self.spelling.join(tokens)

    def save(self, folder: Path, model_max_length: int = 512) -> Tokenizer:
        """Write `tokenizer.json`, `tokenizer_config.json` and a WordPiece's `vocab.txt`, for transformers.

        The folder's `config.json`, if there is one, names the model type. The files are read again, and what
        they hold is returned; raises `UserError` if they do not give the same ids.
        """
        folder.mkdir(parents=True, exist_ok=True)
        if self.kind == "WordPiece":
            names = [self._backend.id_to_token(i) for i in range(self.vocab_size)]
            # An id without a piece still needs a line: the line's number is the id.
            lines = [f"[unused-id-{i}]" if name is None else name for i, name in enumerate(names)]
            (folder / "vocab.txt").write_bytes("".join(f"{line}\n" for line in lines).encode())
        pretty = json.dumps(json.loads(self.backend.to_str()), ensure_ascii=False, indent=1)
        (folder / "tokenizer.json").write_bytes(f"{pretty}\n".encode())
        facts = model_facts(folder)
        values = {
            "tokenizer_class": self._written_class(facts),
            **class_options(self._backend, facts, self.names, two_segments=self.frame.two_segments),
            **({"additional_special_tokens": sorted(self._special)} if self._special else {}),
            "model_max_length": model_max_length,
            **{role: name for role, name in self.names.items() if role in self._ids},
        }
        config = json.dumps(values, ensure_ascii=False, indent=2)
        (folder / "tokenizer_config.json").write_bytes(f"{config}\n".encode())
        saved = Tokenizer.load(folder)
        if saved.hash != self.hash:
            raise UserError(
                f"{folder}: the tokenizer of {self._where} would give other ids once saved. Give one whose "
                "tokenizer.json the tokenizers library wrote"
            )
        return saved

    def moved(self, folder: Path) -> Tokenizer:
        """The same tokenizer after its files were moved to `folder`, which its messages then name."""
        moved = copy.copy(self)
        moved._where = str(folder / Path(self._where).name)
        return moved

    def other_classes(self, model_type: str) -> list[str]:
        """The classes of transformers that may misread a saved folder of a model type.

        They build their own pipeline from its vocabulary and ignore `tokenizer.json`, so that they may give
        other ids, without a message.
        """
        facts = TOKENIZERS[model_type]
        written = self._written_class(facts)
        if written == facts.written or (written == REBUILDS and facts.kind == "WordPiece"):
            return []
        return [each for name in facts.classes for each in (name, f"{name}Fast")]

    def _written_class(self, facts: TokenizerFacts) -> str:
        """The class for a model type's `tokenizer_config.json`: one that gives the same ids."""
        if facts.written is not None and is_rebuilt(self._backend, facts, self.names):
            return facts.written
        return REBUILDS if self._is_usual else OBEYS

    def _survive(self, encode: Callable[[], Result]) -> Result:
        return survive(encode, self._where, quietly=self._may_panic)
