"""The growing array files of one side of a store, cut back to any earlier document by their sizes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bertcli.store.hashed_file import HashedFile
from bertcli.store.token_store import OFFSET_DTYPE

OFFSETS = ("sentences", "documents", "pairs")
NAMES = ("ids", *OFFSETS)
BLOCK = 1 << 22
"""Numbers copied at once."""


class SideFiles:
    """Appends whole documents to `ids.bin`, `sentences.bin`, `documents.bin` and `pairs.bin` of a folder."""

    def __init__(self, folder: Path, dtype: np.dtype[Any], documents: int, sentences: int, tokens: int):
        """Open the files for what follows the first `documents`; what stands after those is cut off."""
        folder.mkdir(parents=True, exist_ok=True)
        self.documents, self.sentences, self.tokens = documents, sentences, tokens
        self._dtype = dtype
        counts = {"ids": tokens * dtype.itemsize}
        counts |= {"sentences": sentences * 8 + 8, "documents": documents * 8 + 8, "pairs": documents * 8 + 8}
        # Truncating a new file of offsets to one makes the 0 that they start with.
        self._files = {name: HashedFile(folder / f"{name}.bin", counts[name]) for name in NAMES}

    def append_sentences(self, ids: NDArray[Any], lengths: NDArray[np.uint32]) -> None:
        """Sentences of the document that is being written: all ids [tokens] in a row, tokens of each [S]."""
        ends = np.cumsum(lengths, dtype=OFFSET_DTYPE) + np.uint64(self.tokens)
        self._write("ids", ids.astype(self._dtype, copy=False))
        self._write("sentences", ends)
        self.tokens += len(ids)
        self.sentences += len(lengths)

    def end_documents(self, counts: NDArray[np.int64]) -> None:
        """The sentences appended since the last call are documents of `counts` [D] sentences each."""
        ends = np.cumsum(counts) + (self.sentences - int(counts.sum()))
        numbers = np.arange(self.documents + 1, self.documents + 1 + len(counts))
        self._write("documents", ends.astype(OFFSET_DTYPE))
        self._write("pairs", (ends - numbers).astype(OFFSET_DTYPE))
        self.documents += len(counts)

    def append_side(self, folder: Path, documents: int, sentences: int, tokens: int) -> None:
        """All that stands in the files of another folder, which hold so many, after what stands here."""
        self._append_file(folder, "ids", tokens, dtype=self._dtype, shift=0)
        self._append_file(folder, "sentences", sentences, dtype=OFFSET_DTYPE, shift=self.tokens)
        self._append_file(folder, "documents", documents, dtype=OFFSET_DTYPE, shift=self.sentences)
        self._append_file(
            folder, "pairs", documents, dtype=OFFSET_DTYPE, shift=self.sentences - self.documents
        )
        self.documents += documents
        self.sentences += sentences
        self.tokens += tokens

    def sync(self) -> None:
        """Have all that was appended on the disk."""
        for file in self._files.values():
            file.sync()

    def close(self) -> None:
        """Close all files."""
        for file in self._files.values():
            file.close()

    def _append_file(self, folder: Path, name: str, count: int, dtype: np.dtype[Any], shift: int) -> None:
        with open(folder / f"{name}.bin", "rb") as file:
            file.seek(0 if name == "ids" else 8)  # past the 0 that offsets start with
            for done in range(0, count, BLOCK):
                block = np.fromfile(file, dtype, min(BLOCK, count - done))
                self._write(name, block + dtype.type(shift) if shift else block)

    def _write(self, name: str, array: NDArray[Any]) -> None:
        self._files[name].append(array.tobytes())
