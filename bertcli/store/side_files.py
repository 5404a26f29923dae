"""The growing array files of one side of a store; cutting them by size brings back any earlier document."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bertcli.store.hashed_file import HashedFile
from bertcli.store.token_store import OFFSET_DTYPE

NAMES = ("ids", "sentences", "documents", "pairs")
BLOCK = 1 << 22
"""Numbers copied at once."""


class SideFiles:
    """Appends full documents to `ids.bin`, `sentences.bin`, `documents.bin` and `pairs.bin` of a folder."""

    def __init__(
        self, folder: Path, dtype: np.dtype[Any], documents: int = 0, sentences: int = 0, tokens: int = 0
    ):
        """Open the files to append after the first `documents`; what follows those is cut off."""
        folder.mkdir(parents=True, exist_ok=True)
        self.documents, self.sentences, self.tokens = documents, sentences, tokens
        self._dtype = dtype
        counts = {"ids": tokens * dtype.itemsize}
        counts |= {"sentences": sentences * 8 + 8, "documents": documents * 8 + 8, "pairs": documents * 8 + 8}
        # Truncating a new file of offsets to one makes the 0 that they start with.
        self._files = {name: HashedFile(folder / f"{name}.bin", counts[name]) for name in NAMES}

    def append_sentences(self, ids: NDArray[Any], lengths: NDArray[np.uint32]) -> None:
        """Append sentences of the current document: all ids [tokens] in a row, tokens of each [S]."""
        ends = np.cumsum(lengths, dtype=OFFSET_DTYPE) + np.uint64(self.tokens)
        self._write("ids", ids.astype(self._dtype, copy=False))
        self._write("sentences", ends)
        self.tokens += len(ids)
        self.sentences += len(lengths)

    def end_documents(self, counts: NDArray[np.int64]) -> None:
        """Make the sentences appended since the last call documents of `counts` [D] sentences each."""
        ends = np.cumsum(counts) + (self.sentences - int(counts.sum()))
        numbers = np.arange(self.documents + 1, self.documents + 1 + len(counts))
        self._write("documents", ends.astype(OFFSET_DTYPE))
        self._write("pairs", (ends - numbers).astype(OFFSET_DTYPE))
        self.documents += len(counts)

    def append_side(self, folder: Path, documents: int, sentences: int, tokens: int) -> None:
        """Append all documents of another folder, whose files hold these counts."""
        self._append_file(folder, "ids", tokens, shift=0)
        self._append_file(folder, "sentences", sentences, shift=self.tokens)
        self._append_file(folder, "documents", documents, shift=self.sentences)
        self._append_file(folder, "pairs", documents, shift=self.sentences - self.documents)
        self.documents += documents
        self.sentences += sentences
        self.tokens += tokens

    def sync(self) -> None:
        """Wait until all appended data is on the disk."""
        for file in self._files.values():
            file.sync()

    def close(self) -> None:
        """Close all files."""
        for file in self._files.values():
            file.close()

    def _append_file(self, folder: Path, name: str, count: int, shift: int) -> None:
        dtype = self._dtype if name == "ids" else OFFSET_DTYPE
        with open(folder / f"{name}.bin", "rb") as file:
            file.seek(0 if name == "ids" else 8)  # past the 0 that offsets start with
            for done in range(0, count, BLOCK):
                block = np.fromfile(file, dtype, min(BLOCK, count - done))
                self._write(name, block + dtype.type(shift) if shift else block)

    def _write(self, name: str, array: NDArray[Any]) -> None:
        self._files[name].append(array.tobytes())
