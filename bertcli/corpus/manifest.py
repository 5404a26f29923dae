"""The manifest of a token store: its sources, options and counts; and files with hashes of their blocks."""

from __future__ import annotations

import hashlib
import json
import os
from contextlib import ExitStack
from dataclasses import asdict, dataclass
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
"""What to do about a damaged store that has its note; `rebuild` checks whether it has one."""

Natural = Annotated[int, Field(ge=0)]
_checked = with_config(ConfigDict(extra="forbid", allow_inf_nan=False))


@_checked
@dataclass(frozen=True)
class SourceRecord:
    """A corpus file at the time it was read."""

    name: str
    size: Natural
    """Bytes on disk."""
    mtime_ns: int
    sha256: str


@_checked
@dataclass(frozen=True)
class SideCounts:
    """Counts of one side of a store, `train` or `heldout`."""

    documents: Natural = 0
    one_sentence_documents: Natural = 0
    """Documents that give no true sentence pair."""
    sentences: Natural = 0
    tokens: Natural = 0
    """Without special tokens, which are not stored."""
    unk_tokens: Natural = 0
    words: Natural = 0
    """Separated by white space."""
    bytes: Natural = 0
    """Of the text, in UTF-8."""


@_checked
@dataclass(frozen=True)
class Manifest:
    """`manifest.json`, written last: a folder without it is no store."""

    vocab_size: Natural
    tokenizer_hash: str
    options: dict[str, Any]
    """What the store depends on: the `corpus` section without `store`, and the choice of the tokenizer."""
    sources: tuple[SourceRecord, ...]
    arrays: dict[str, Natural]
    """File under the store's folder -> its size in bytes."""
    hashes: str
    """BLAKE2b of `hashes.bin`, which holds a hash of each block of the arrays (`verify.py`)."""
    pieces: dict[str, tuple[Natural, ...]]
    """Side -> for each document of the text, the number of its pieces on this side; empty if none was cut."""
    train: SideCounts
    heldout: SideCounts
    dropped_documents: Natural
    """Documents without a token."""
    dropped_sentences: Natural
    unigram_entropy: float
    """Of the training tokens, in nats a token: the loss of a model that knows only their frequencies."""
    version: int = FORMAT_VERSION

    @property
    def unk_rate(self) -> float:
        """Share of [UNK] among all tokens, both sides."""
        return (self.train.unk_tokens + self.heldout.unk_tokens) / max(1, self._tokens)

    @property
    def tokens_per_word(self) -> float:
        """Tokens for each word between white space, both sides."""
        return self._tokens / max(1, self.train.words + self.heldout.words)

    @property
    def _tokens(self) -> int:
        return self.train.tokens + self.heldout.tokens


def rebuild(folder: Path) -> str:
    """What to do about an unusable store in `folder`; a folder without bertcli's note is never replaced."""
    if read_note(folder, "store") is not None:
        return REBUILD
    return f"Nothing shows that bertcli made it: move {folder} elsewhere, then bertcli prepare CONFIG"


def write_manifest(folder: Path, manifest: Manifest) -> None:
    """Write `manifest.json`; the same manifest gives the same bytes."""
    text = json.dumps(asdict(manifest), indent=1, sort_keys=True, ensure_ascii=False)
    (folder / MANIFEST).write_text(f"{text}\n", encoding="utf-8")


def read_manifest(folder: Path) -> Manifest:
    """Raises `UserError` where the folder holds no complete store, or one of another version."""
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
"""Of the file of hashes beside a growing file."""


def block_hash(data: Any) -> bytes:
    """BLAKE2b of one block; the last block of a file may be shorter."""
    return hashlib.blake2b(data, digest_size=HASH_BYTES).digest()


def num_blocks(size: int) -> int:
    """Blocks of a file of `size` bytes."""
    return -(-size // BLOCK_BYTES)


class HashedFile:
    """Appends to a file; `sync` puts the file and the hashes of its blocks on the disk."""

    def __init__(self, path: Path, size: int):
        """Open the file to append after its first `size` bytes; what follows those is cut off."""
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
        """Write at the end, and hash each full block."""
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
            self._write_hash()  # of the unfinished block; it is written again once the block is full
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
    """Unbuffered: a write that a full disk refused is not tried again when the file is closed."""
    return path.open("r+b" if path.exists() else "w+b", buffering=0)


def _write_all(file: FileIO, data: bytes) -> None:
    left = memoryview(data)
    while left:
        left = left[file.write(left) :]
