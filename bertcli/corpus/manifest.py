"""The manifest of a token store: files, options and counts."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, fields
from functools import cache
from pathlib import Path
from typing import Annotated, Any

from pydantic import ConfigDict, Field, TypeAdapter, ValidationError, with_config

from bertcli.config.corpus import CorpusConfig
from bertcli.folders.mark import read_note
from bertcli.system.errors import UserError, first_problem
from bertcli.system.files import plain_text

FORMAT_VERSION = 3
MANIFEST = "manifest.json"
REBUILD = "Build the store again: bertcli prepare CONFIG --overwrite"
"""The advice about a damaged store that has its note; `rebuild` checks for the note."""

Natural = Annotated[int, Field(ge=0)]
_checked = with_config(ConfigDict(extra="forbid", allow_inf_nan=False))
type_adapter = cache(TypeAdapter)
"""The pydantic adapter of a type, which takes long to make."""


@_checked
@dataclass(frozen=True)
class FileRecord:
    """A corpus file at the time it was read.

    Attributes:
        size: the number of bytes on disk.
    """

    name: str
    size: Natural
    mtime_ns: int
    sha256: str


@_checked
@dataclass
class SideCounts:
    """The counts of one side of a store, `train` or `heldout`.

    Attributes:
        one_sentence_documents: the number of documents with one sentence, which give no true sentence pair.
        tokens: the number of tokens, without special tokens, which are not stored.
        words: the number of words, separated by white space.
        bytes: the size of the text in UTF-8.
    """

    documents: Natural = 0
    one_sentence_documents: Natural = 0
    sentences: Natural = 0
    tokens: Natural = 0
    unk_tokens: Natural = 0
    words: Natural = 0
    bytes: Natural = 0

    def __add__(self, other: SideCounts) -> SideCounts:
        return SideCounts(*(getattr(self, f.name) + getattr(other, f.name) for f in fields(SideCounts)))


@_checked
@dataclass(frozen=True)
class StoredSource:
    """One source of a store's text; on each side, its documents follow those of the sources before it.

    Attributes:
        pieces: side -> the numbers of pieces, on this side, of documents that were cut; empty if none was
            cut.
        dropped_documents: the number of documents without a token.
        unigram_entropy: that of `Manifest`, for this source alone.
    """

    name: str
    files: tuple[FileRecord, ...]
    pieces: dict[str, tuple[Natural, ...]]
    train: SideCounts
    heldout: SideCounts
    dropped_documents: Natural
    dropped_sentences: Natural
    unigram_entropy: float

    @property
    def text(self) -> SideCounts:
        """The counts of both sides together."""
        return self.train + self.heldout


@_checked
@dataclass(frozen=True)
class Manifest:
    """The content of `manifest.json`, which is written last: a folder without that file is no store.

    Attributes:
        options: each key that the store depends on -> its value: `corpus` without `store`, and the tokenizer.
        arrays: the path of an array in the store's folder -> its size in bytes.
        hashes: the BLAKE2b of `hashes.bin`, which holds a hash of each block of the arrays (`finish.py`).
        unigram_entropy: the entropy of the training tokens, in nats per token: the loss of a model that knows
            only their frequencies.
    """

    vocab_size: Natural
    tokenizer_hash: str
    options: dict[str, Any]
    sources: tuple[StoredSource, ...]
    arrays: dict[str, Natural]
    hashes: str
    unigram_entropy: float
    version: int = FORMAT_VERSION

    @property
    def files(self) -> list[FileRecord]:
        """The files of all sources."""
        return [file for source in self.sources for file in source.files]

    @property
    def train(self) -> SideCounts:
        """The counts of the training side."""
        return sum((source.train for source in self.sources), SideCounts())

    @property
    def heldout(self) -> SideCounts:
        """The counts of the held-out side."""
        return sum((source.heldout for source in self.sources), SideCounts())

    def shares(self, corpus: CorpusConfig) -> list[float]:
        """The share of each source in the rows when nothing moves any more."""
        return corpus.shares([source.train.tokens for source in self.sources], step=1, ramp_steps=1)

    def mixed_entropy(self, corpus: CorpusConfig) -> float:
        """The loss, in nats per token, of a model that knows only the frequencies in each source, on text
        with these shares."""
        shares = zip(self.shares(corpus), self.sources, strict=True)
        return sum(share * source.unigram_entropy for share, source in shares)

    @property
    def dropped_documents(self) -> int:
        """The number of documents without a token."""
        return sum(source.dropped_documents for source in self.sources)

    @property
    def dropped_sentences(self) -> int:
        """The number of sentences without a token."""
        return sum(source.dropped_sentences for source in self.sources)

    @property
    def text(self) -> SideCounts:
        """The counts of both sides together."""
        return self.train + self.heldout

    @property
    def unk_rate(self) -> float:
        """The share of unknown tokens among all tokens of both sides."""
        return self.text.unk_tokens / max(1, self.text.tokens)

    @property
    def tokens_per_word(self) -> float:
        """The tokens per word, with words separated by white space; both sides together."""
        return self.text.tokens / max(1, self.text.words)


def rebuild(folder: Path) -> str:
    """The advice about an unusable store in `folder`; a folder without bertcli's note is never replaced."""
    if read_note(folder, "store") is not None:
        return REBUILD
    return f"Nothing shows that bertcli made it: move {folder} elsewhere, then bertcli prepare CONFIG"


def write_manifest(folder: Path, manifest: Manifest) -> None:
    """Write `manifest.json`; equal manifests give equal bytes."""
    text = json.dumps(asdict(manifest), indent=1, sort_keys=True, ensure_ascii=False)
    (folder / MANIFEST).write_text(f"{text}\n", encoding="utf-8")


def read_manifest(folder: Path) -> Manifest:
    """Read `manifest.json`. Raises `UserError` if the folder holds no complete store of this version."""
    path = folder / MANIFEST
    try:
        value = json.loads(plain_text(path))
        version = value["version"]
        if version != FORMAT_VERSION:
            raise UserError(
                f"{folder}: a token store of format {version}; this program reads format {FORMAT_VERSION}. "
                f"{rebuild(folder)}"
            )
        return type_adapter(Manifest).validate_python(value)
    except UserError:
        raise
    except (FileNotFoundError, NotADirectoryError):
        raise UserError(
            f"{folder}: no token store: it has no {MANIFEST}. Build one: bertcli prepare CONFIG"
        ) from None
    except ValidationError as error:
        reason = first_problem(error)
    except (ValueError, RecursionError, KeyError, TypeError) as error:
        reason = repr(error)
    raise UserError(f"{path}: damaged: {reason}. {rebuild(folder)}")
