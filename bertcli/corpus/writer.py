"""The growing array files of a store; cutting them to a size restores the state after an earlier document."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bertcli.corpus.blocks import HashedFile
from bertcli.corpus.chunks import Chunk, DocumentEnd
from bertcli.corpus.encode import EncodedChunk
from bertcli.corpus.manifest import SideCounts
from bertcli.corpus.token_store import OFFSET_DTYPE, SIDES, array_sizes

BLOCK = 1 << 22
"""The number of values copied at once."""


class SideFiles:
    """The files `ids.bin`, `sentences.bin`, `documents.bin` and `pairs.bin` of a folder, open to append."""

    def __init__(self, folder: Path, dtype: np.dtype[Any], held: SideCounts = SideCounts()):
        """Open the files to append after what `held` counts; the rest is cut off."""
        folder.mkdir(parents=True, exist_ok=True)
        self.documents, self.sentences, self.tokens = held.documents, held.sentences, held.tokens
        self._dtype = dtype
        # Truncating a new file of offsets to the size of one makes the 0 with which offsets start.
        sizes = array_sizes(held, dtype)
        self._files = {name: HashedFile(folder / f"{name}.bin", size) for name, size in sizes.items()}

    def append_sentences(self, ids: NDArray[Any], lengths: NDArray[np.uint32]) -> None:
        """Append sentences: the ids of all [tokens], and the number of tokens of each [S]."""
        ends = np.cumsum(lengths, dtype=OFFSET_DTYPE) + np.uint64(self.tokens)
        self._write("ids", ids.astype(self._dtype, copy=False))
        self._write("sentences", ends)
        self.tokens += len(ids)
        self.sentences += len(lengths)

    def end_documents(self, counts: NDArray[np.int64]) -> None:
        """Make documents of the sentences appended since the last call, with `counts` [D] sentences each."""
        ends = np.cumsum(counts) + (self.sentences - int(counts.sum()))
        numbers = np.arange(self.documents + 1, self.documents + 1 + len(counts))
        self._write("documents", ends.astype(OFFSET_DTYPE))
        self._write("pairs", (ends - numbers).astype(OFFSET_DTYPE))
        self.documents += len(counts)

    def append_side(self, folder: Path, held: SideCounts, before: SideCounts = SideCounts()) -> None:
        """Append documents of another folder: those that `held` counts, after those that `before` counts."""
        tokens, sentences, documents = (
            getattr(self, name) - getattr(before, name) for name in ("tokens", "sentences", "documents")
        )
        self._append_file(folder, "ids", range(before.tokens, before.tokens + held.tokens), shift=0)
        some = range(before.sentences, before.sentences + held.sentences)
        self._append_file(folder, "sentences", some, shift=tokens)
        some = range(before.documents, before.documents + held.documents)
        self._append_file(folder, "documents", some, shift=sentences)
        self._append_file(folder, "pairs", some, shift=sentences - documents)
        self.documents += held.documents
        self.sentences += held.sentences
        self.tokens += held.tokens

    def sync(self) -> None:
        """Wait until all appended data is on the disk."""
        for file in self._files.values():
            file.sync()

    def close(self) -> None:
        """Close all files."""
        for file in self._files.values():
            file.close()

    def _append_file(self, folder: Path, name: str, values: range, shift: int) -> None:
        dtype = self._dtype if name == "ids" else OFFSET_DTYPE
        with open(folder / f"{name}.bin", "rb") as file:
            first = values.start + (name != "ids")  # offsets start with a 0
            file.seek(first * dtype.itemsize)
            for done in range(0, len(values), BLOCK):
                block = np.fromfile(file, dtype, min(BLOCK, len(values) - done))
                if shift:
                    block = (block.astype(np.int64) + shift).astype(dtype)
                self._write(name, block)

    def _write(self, name: str, array: NDArray[Any]) -> None:
        self._files[name].append(array.tobytes())


SPOOL_BYTES = 32 << 20
"""The most bytes of an unfinished document in memory; a longer one goes to a temporary file."""
FEW_DOCUMENTS = 40
"""The number of documents below which runs of sentences are held out instead (`parts.py`)."""


@dataclass
class SideProgress(SideCounts):
    """The counts of one side, train or held out, of a store that is being built; all but `unk_tokens`.

    Attributes:
        first: the content hash and the number of sentences of each of the first `FEW_DOCUMENTS` documents.
    """

    first: list[list[int]] = field(default_factory=list)


@dataclass
class SourceProgress:
    """The counts of one source in a store that is being built.

    Attributes:
        smallest_hashes: the two smallest hashes of stored documents; a larger held-out share would take these
            first.
        cut_documents: the number of documents that were cut to hold out runs of sentences; 0 if documents are
            held out.
        pieces: side -> the number of pieces, on this side, of each cut document that has any there.
    """

    sides: dict[str, SideProgress] = field(default_factory=lambda: {side: SideProgress() for side in SIDES})
    dropped_documents: int = 0
    dropped_sentences: int = 0
    smallest_hashes: list[int] = field(default_factory=list)
    cut_documents: int = 0
    pieces: dict[str, list[int]] = field(default_factory=lambda: {side: [] for side in SIDES})

    @property
    def text(self) -> SideCounts:
        """The counts of both sides together."""
        return self.sides["train"] + self.sides["heldout"]

    def end_document(
        self, end: DocumentEnd, side: str, sentences: int, tokens: int, words: int, dropped: int
    ) -> None:
        """Count a document of a side. `dropped` of its sentences have no token."""
        self.dropped_sentences += dropped
        if not sentences:
            self.dropped_documents += 1
            return
        counts = self.sides[side]
        counts.documents += 1
        counts.one_sentence_documents += sentences == 1
        counts.sentences += sentences
        counts.tokens += tokens
        counts.words += words
        counts.bytes += end.num_bytes
        if len(counts.first) < FEW_DOCUMENTS:
            counts.first.append([end.content_hash, sentences])
        self.smallest_hashes = sorted([*self.smallest_hashes, end.content_hash])[:2]


@dataclass
class BuildProgress:
    """The state of a build after the documents that it has written; enough to resume it.

    Attributes:
        file, documents: the number of a file, and of its documents that have been read; files before it are
            complete.
    """

    sources: list[SourceProgress]
    file: int = 0
    documents: int = 0

    @classmethod
    def begin(cls, num_sources: int) -> BuildProgress:
        """The state before the first document."""
        return cls([SourceProgress() for _ in range(num_sources)])

    def side(self, name: str) -> SideCounts:
        """The counts of one side of all sources."""
        return sum((source.sides[name] for source in self.sources), SideCounts())

    @property
    def text(self) -> SideCounts:
        """The counts of both sides together."""
        return self.side("train") + self.side("heldout")


class StoreWriter:
    """A writer of chunks into both sides; `progress` counts the complete documents written so far."""

    def __init__(self, folder: Path, dtype: np.dtype[Any], heldout_fraction: float, progress: BuildProgress):
        self.progress = progress
        self._threshold = int(heldout_fraction * 2**64)
        self._sides = {name: SideFiles(folder / name, dtype, progress.side(name)) for name in SIDES}
        self._spool = _DocumentSpool(folder, dtype)

    def add(self, chunk: Chunk, encoded: EncodedChunk) -> None:
        """Write the documents that end in this chunk; keep its part of an unfinished one for later."""
        progress = self.progress.sources[chunk.source]
        sentence_ends = np.cumsum(encoded.piece_sentences)
        token_ends = np.cumsum(encoded.lengths, dtype=np.int64)
        batches: dict[str, list[tuple[NDArray[Any], NDArray[np.uint32]]]] = {side: [] for side in SIDES}
        sentence = token = 0
        for piece, sentence_end in enumerate(sentence_ends.tolist()):
            token_end = int(token_ends[sentence_end - 1]) if sentence_end else 0
            ids, lengths = encoded.ids[token:token_end], encoded.lengths[sentence:sentence_end]
            dropped, words = int(encoded.piece_dropped[piece]), int(encoded.piece_words[piece])
            sentence, token = sentence_end, token_end
            spool = self._spool
            if piece == len(chunk.ends):  # the document goes on in the next chunk
                spool.append(ids, lengths, dropped, words)
                break
            end = chunk.ends[piece]
            side = self._side(end)
            if spool.pieces:
                spool.append(ids, lengths, dropped, words)
                dropped, words = spool.dropped, spool.words
                progress.end_document(
                    end, side, spool.sentences, tokens=spool.tokens, words=words, dropped=dropped
                )
                if spool.sentences:
                    for some_ids, some_lengths in spool.drain():
                        self._sides[side].append_sentences(some_ids, some_lengths)
                    self._sides[side].end_documents(np.array([spool.sentences]))
                spool.close()
                self._spool = _DocumentSpool(spool.folder, spool.dtype)
            else:
                progress.end_document(end, side, len(lengths), tokens=len(ids), words=words, dropped=dropped)
                if len(lengths):
                    batches[side].append((ids, lengths))
        if chunk.ends:
            after = chunk.ends[-1].after
            self.progress.file, self.progress.documents = after.file, after.documents
        for name, batch in batches.items():
            if batch:
                all_ids, all_lengths = zip(*batch, strict=True)
                self._sides[name].append_sentences(np.concatenate(all_ids), np.concatenate(all_lengths))
                self._sides[name].end_documents(np.array(list(map(len, all_lengths))))

    def sync(self) -> None:
        """Wait until all written data is on the disk."""
        for side in self._sides.values():
            side.sync()

    def close(self) -> None:
        """Close the files."""
        self._spool.close()
        for side in self._sides.values():
            side.close()

    def _side(self, end: DocumentEnd) -> str:
        return "heldout" if end.content_hash < self._threshold else "train"


class _DocumentSpool:
    """The start of a document longer than a chunk, kept until the document's end decides its side."""

    def __init__(self, folder: Path, dtype: np.dtype[Any]):
        self.folder, self.dtype = folder, dtype
        self._file = tempfile.SpooledTemporaryFile(SPOOL_BYTES, dir=str(folder))  # noqa: SIM115
        self.pieces: list[tuple[int, int]] = []
        self.sentences = self.tokens = self.words = self.dropped = 0

    def append(self, ids: NDArray[Any], lengths: NDArray[np.uint32], dropped: int, words: int) -> None:
        self.pieces.append((len(ids), len(lengths)))
        self._file.write(ids.tobytes())
        self._file.write(lengths.tobytes())
        self.sentences += len(lengths)
        self.tokens += len(ids)
        self.words += words
        self.dropped += dropped

    def drain(self) -> Iterator[tuple[NDArray[Any], NDArray[np.uint32]]]:
        self._file.seek(0)
        for tokens, sentences in self.pieces:
            ids = np.frombuffer(self._file.read(tokens * self.dtype.itemsize), self.dtype)
            yield ids, np.frombuffer(self._file.read(sentences * 4), np.uint32)

    def close(self) -> None:
        self._file.close()
