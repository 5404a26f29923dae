"""A growing file of a store, and the hash of each of its blocks."""

import hashlib
import os
from contextlib import ExitStack
from io import FileIO
from pathlib import Path
from typing import Any

from bertcli.system.files import flush_to_disk

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
