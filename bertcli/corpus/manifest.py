"""The manifest of a token store: sources, options and counts. Also files with hashes of their blocks."""

from __future__ import annotations

import hashlib
import json
import os
from contextlib import ExitStack
from dataclasses import asdict, astuple, dataclass
from io import FileIO
from pathlib import Path
from typing import Annotated, Any

from pydantic import ConfigDict, Field, TypeAdapter, ValidationError, with_config

from bertcli.folders.mark import read_note
from bertcli.system.errors import UserError
from bertcli.system.files import flush_to_disk, plain_text

FORMAT_VERSION = 2
MANIFEST = "manifest.json"
REBUILD = "Build the store again: bertcli prepare CONFIG --overwrite"
"""The advice about a damaged store that has its note; `rebuild` checks for the note."""

Natural = Annotated[int, Field(ge=0)]
_checked = with_config(ConfigDict(extra="forbid", allow_inf_nan=False))


@_checked
@dataclass(frozen=True)
class SourceRecord:
    """A corpus file at the time it was read."""

    name: str
    size: Natural
    """The number of bytes on disk."""
    mtime_ns: int
    sha256: str


@_checked
@dataclass(frozen=True)
class SideCounts:
    """The counts of one side of a store, `train` or `heldout`."""

    documents: Natural = 0
    one_sentence_documents: Natural = 0
    """The number of documents with one sentence, which give no true sentence pair."""
    sentences: Natural = 0
    tokens: Natural = 0
    """The number of tokens, without special tokens, which are not stored."""
    unk_tokens: Natural = 0
    words: Natural = 0
    """The number of words, separated by white space."""
    bytes: Natural = 0
    """The size of the text in UTF-8."""

    def __add__(self, other: SideCounts) -> SideCounts:
        return SideCounts(*map(sum, zip(astuple(self), astuple(other), strict=True)))


@_checked
@dataclass(frozen=True)
class Manifest:
    """The content of `manifest.json`, which is written last: a folder without that file is no store."""

    vocab_size: Natural
    tokenizer_hash: str
    options: dict[str, Any]
    """Each key that the store depends on -> its value: `corpus` without `store`, and the tokenizer."""
    sources: tuple[SourceRecord, ...]
    arrays: dict[str, Natural]
    """The path of an array in the store's folder -> its size in bytes."""
    hashes: str
    """The BLAKE2b of `hashes.bin`, which holds a hash of each block of the arrays (`finish.py`)."""
    pieces: dict[str, tuple[Natural, ...]]
    """Side -> the numbers of pieces, on this side, of documents that were cut; empty if none was cut."""
    train: SideCounts
    heldout: SideCounts
    dropped_documents: Natural
    """The number of documents without a token."""
    dropped_sentences: Natural
    unigram_entropy: float
    """The entropy of the training tokens, in nats per token: the loss of a model that knows only their
    frequencies."""
    version: int = FORMAT_VERSION

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
        return TypeAdapter(Manifest).validate_python(value)
    except UserError:
        raise
    except (FileNotFoundError, NotADirectoryError):
        raise UserError(
            f"{folder}: no token store: it has no {MANIFEST}. Build one: bertcli prepare CONFIG"
        ) from None
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        reason = f"{'.'.join(map(str, first['loc']))}: {first['msg']}"
    except (ValueError, RecursionError, KeyError, TypeError) as error:
        reason = repr(error)
    raise UserError(f"{path}: damaged: {reason}. {rebuild(folder)}")


BLOCK_BYTES = 1 << 20
HASH_BYTES = 16
SUFFIX = ".hashes"
"""The suffix of the file of hashes beside a growing file."""


def block_hash(data: Any) -> bytes:
    """The BLAKE2b of one block; the last block of a file may be shorter."""
    return hashlib.blake2b(data, digest_size=HASH_BYTES).digest()


def num_blocks(size: int) -> int:
    """The number of blocks of a file of `size` bytes."""
    return -(-size // BLOCK_BYTES)


class HashedFile:
    """A file to append to; `sync` puts the file and the hashes of its blocks on the disk."""

    def __init__(self, path: Path, size: int):
        """Open the file to append after its first `size` bytes; later bytes are cut off."""
        self._open = ExitStack()
        self._file, self._hashes = (
            self._open.enter_context(_open_raw(p)) for p in (path, path.with_suffix(SUFFIX))
        )
        self._file.truncate(size)
        self._blocks = size // BLOCK_BYTES
        self._hash = hashlib.blake2b(digest_size=HASH_BYTES)
        self._filled = size % BLOCK_BYTES
        self._file.seek(self._blocks * BLOCK_BYTES)
        while tail := self._file.read(BLOCK_BYTES):
            self._hash.update(tail)
        self._file.seek(0, os.SEEK_END)

    def append(self, data: bytes) -> None:
        """Write at the end of the file, and hash each full block."""
        _write_all(self._file, data)
        left = memoryview(data)
        while left:
            part = left[: BLOCK_BYTES - self._filled]
            self._hash.update(part)
            self._filled += len(part)
            left = left[len(part) :]
            if self._filled == BLOCK_BYTES:
                self._write_hash()
                self._blocks += 1
                self._hash = hashlib.blake2b(digest_size=HASH_BYTES)
                self._filled = 0

    def sync(self) -> None:
        """Wait until all appended data is on the disk."""
        if self._filled:
            self._write_hash()  # the hash of an unfinished block is written again once the block is full
        self._hashes.truncate((self._blocks + (self._filled > 0)) * HASH_BYTES)
        for file in (self._file, self._hashes):
            flush_to_disk(file)

    def close(self) -> None:
        """Close both files."""
        self._open.close()

    def _write_hash(self) -> None:
        self._hashes.seek(self._blocks * HASH_BYTES)
        _write_all(self._hashes, self._hash.digest())


def _open_raw(path: Path) -> FileIO:
    """Open a file unbuffered: closing it then does not repeat a write that a full disk refused."""
    return path.open("r+b" if path.exists() else "w+b", buffering=0)


def _write_all(file: FileIO, data: bytes) -> None:
    left = memoryview(data)
    while left:
        left = left[file.write(left) :]
