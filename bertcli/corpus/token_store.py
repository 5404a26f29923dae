"""The token store: a folder of memory-mapped arrays that opens equally fast at any size of the corpus.

    store/manifest.json         files, options and counts, written last (`manifest.py`)
          tokenizer/            vocab.txt, tokenizer.json, tokenizer_config.json
          train/, heldout/      ids.bin sentences.bin documents.bin pairs.bin, little-endian, no header
          hashes.bin            the hash of each block of 1 MiB of those, in this order (`finish.py`)

Offsets nest: a document is a run of sentences, a sentence is a run of ids.
"""

from __future__ import annotations

import itertools
import mmap
import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bertcli.corpus import blocks
from bertcli.corpus.manifest import MANIFEST, Manifest, SideCounts, StoredSource, read_manifest, rebuild
from bertcli.system.errors import UserError
from bertcli.system.files import is_cut
from bertcli.tokenizer.tokenizer import Tokenizer

SIDES = ("train", "heldout")
NAMES = ("ids", "sentences", "documents", "pairs")
"""The arrays of a side."""
HASHES = "hashes.bin"
OFFSET_DTYPE = np.dtype("<u8")
_MEMORY = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
"""The bytes of this machine's memory."""


@dataclass(frozen=True)
class TokenStore:
    """One side of a store, or one source of a side, read-only. Offsets count from the start of the side.

    Attributes:
        ids: uint16 (uint32 for a vocabulary over 65,536) [tokens]; no special tokens.
        sentences: uint64 [num_sentences + 1]; the start of each sentence in `ids`, then the end.
        documents: uint64 [num_documents + 1]; the start of each document in `sentences`, then the end.
        pairs: uint64 [num_documents + 1]; the number of sentence boundaries inside the documents before
            document d. It is documents[d] - d, because every document has a sentence.
        bounds: the first document of each source, then the end; empty: one source, with all documents.
        texts: for each source, the start in `sentences` of each document of the text, then the end, if
            documents here are pieces of those; else None. Empty: nothing is cut.
    """

    ids: NDArray[Any]
    sentences: NDArray[np.uint64]
    documents: NDArray[np.uint64]
    pairs: NDArray[np.uint64]
    bounds: tuple[int, ...] = ()
    texts: tuple[NDArray[np.uint64] | None, ...] = ()

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle the paths instead of the arrays: loader processes map the files again without a copy."""
        arrays = tuple(_describe(getattr(self, name)) for name in NAMES)
        return _reopen, (arrays, self.bounds, self.texts)

    @property
    def sources(self) -> tuple[TokenStore, ...]:
        """Each source as a store of its own."""
        texts = self.texts or (None,) * max(1, len(self.bounds) - 1)
        ends = itertools.pairwise(self.bounds or (0, len(self.documents) - 1))
        return tuple(replace(self, bounds=own, texts=(some,)) for own, some in zip(ends, texts, strict=True))

    def check_sizes(self) -> None:
        """Raise `UserError` if a file was cut since it was opened: a read of the lost part would end the
        process."""
        for array in (self.ids, self.sentences, self.documents, self.pairs):
            if is_cut(array):
                path = Path(str(getattr(array, "filename", "")))
                raise UserError(f"{path}: was cut while it was in use. {rebuild(path.parent.parent)}")

    @property
    def num_tokens(self) -> int:
        """The number of tokens of all sentences."""
        first, last = self._sentences
        return int(self.sentences[last]) - int(self.sentences[first])

    @property
    def num_sentences(self) -> int:
        """The number of sentences of all documents."""
        first, last = self._sentences
        return last - first

    @property
    def first_sentence(self) -> int:
        """The number of the first sentence, in `sentences`."""
        return self._sentences[0]

    @property
    def _sentences(self) -> tuple[int, int]:
        first, last = self._documents
        return int(self.documents[first]), int(self.documents[last])

    @property
    def _documents(self) -> tuple[int, int]:
        return (self.bounds[0], self.bounds[-1]) if self.bounds else (0, len(self.documents) - 1)

    @property
    def starts(self) -> NDArray[np.uint64]:
        """The start of each document in `sentences`, then the end."""
        first, last = self._documents
        return self.documents[first : last + 1]

    @property
    def num_documents(self) -> int:
        """The number of documents."""
        first, last = self._documents
        return last - first

    @property
    def num_texts(self) -> int:
        """The number of documents of the text; all pieces of a document count once."""
        return sum(
            source.num_documents if texts is None else len(texts) - 1
            for source in self.sources
            for texts in source.texts
        )

    @property
    def num_pairs(self) -> int:
        """The number of places between two sentences of one document; each gives a true pair."""
        first, last = self._documents
        return int(self.pairs[last]) - int(self.pairs[first])

    @property
    def first_pair(self) -> int:
        """The number of the first of these places, in `pairs`."""
        return int(self.pairs[self._documents[0]])


@dataclass(frozen=True)
class OpenStore:
    """A store: both sides, the tokenizer that made them, and the manifest.

    Attributes:
        heldout: the held-out side; it has no documents if `corpus.heldout_fraction` is 0.
    """

    folder: Path
    train: TokenStore
    heldout: TokenStore
    tokenizer: Tokenizer
    manifest: Manifest


def open_store(folder: Path, tokenizer: Tokenizer | None = None) -> OpenStore:
    """Open a complete store. Only the sizes and the outer offsets of the arrays are read (see `finish.py`).

    `tokenizer`: the store's, if it was read before. Raises `UserError` if there is no store, or if an array
    or the tokenizer does not match the manifest.
    """
    manifest = read_manifest(folder)
    tokenizer = tokenizer or Tokenizer.load(folder / "tokenizer")
    if tokenizer.hash != manifest.tokenizer_hash or tokenizer.vocab_size != manifest.vocab_size:
        raise UserError(f"{folder / 'tokenizer'}: not the tokenizer that made this store. {rebuild(folder)}")
    sides, dtype = {"train": manifest.train, "heldout": manifest.heldout}, ids_dtype(manifest.vocab_size)
    sizes = {
        f"{side}/{name}.bin": size
        for side, counts in sides.items()
        for name, size in array_sizes(counts, dtype).items()
    }
    if sizes != manifest.arrays or not all(map(_fits, manifest.sources)):
        raise UserError(
            f"{folder / MANIFEST}: damaged: its counts and sizes contradict each other. {rebuild(folder)}"
        )
    sizes |= {HASHES: blocks.HASH_BYTES * sum(map(blocks.num_blocks, sizes.values()))}
    for name, size in sizes.items():
        path = folder / name
        found = path.stat().st_size if path.is_file() else None
        if found != size:
            got = "it is missing" if found is None else f"it has {found:,} bytes"
            raise UserError(f"{path}: damaged: {got}, {size:,} were written. {rebuild(folder)}")
    train, heldout = (
        _open_side(
            folder / side,
            [getattr(source, side) for source in manifest.sources],
            pieces=[source.pieces[side] for source in manifest.sources],
            ids=dtype,
        )
        for side in SIDES
    )
    return OpenStore(folder, train, heldout, tokenizer=tokenizer, manifest=manifest)


def array_sizes(counts: SideCounts, ids: np.dtype[Any]) -> dict[str, int]:
    """The name of each array of a side -> its bytes; `ids`: the dtype of the ids."""
    sentences, documents = (8 * (number + 1) for number in (counts.sentences, counts.documents))
    return dict(zip(NAMES, (counts.tokens * ids.itemsize, sentences, documents, documents), strict=True))


def ids_dtype(vocab_size: int) -> np.dtype[Any]:
    """The smallest dtype, uint16 or uint32, that holds every id."""
    return np.dtype("<u2") if vocab_size <= 1 << 16 else np.dtype("<u4")


def _fits(source: StoredSource) -> bool:
    """True if the pieces of a source are as many as its documents on each side, or none."""
    sides = {"train": source.train, "heldout": source.heldout}
    return source.pieces.keys() == sides.keys() and all(
        sum(source.pieces[name]) in (0, counts.documents) for name, counts in sides.items()
    )


def _open_side(
    folder: Path, sources: Sequence[SideCounts], pieces: Sequence[Sequence[int]], ids: np.dtype[Any]
) -> TokenStore:
    """A side; `sources` counts each source on it, and `pieces` are those of `StoredSource`."""
    offsets = (_map(folder / f"{name}.bin", OFFSET_DTYPE) for name in ("sentences", "documents", "pairs"))
    sentence_starts, document_starts, pairs = offsets
    side = TokenStore(_map(folder / "ids.bin", ids), sentence_starts, document_starts, pairs=pairs)
    documents = sentences = tokens = 0
    for counts in [SideCounts(), *sources]:
        documents += counts.documents
        sentences += counts.sentences
        tokens += counts.tokens
        ends = {
            "sentences": (side.sentences[sentences], tokens),
            "documents": (side.documents[documents], sentences),
            "pairs": (side.pairs[documents], sentences - documents),
        }
        for name, (found, end) in ends.items():
            if found != end:
                raise UserError(
                    f"{folder / name}.bin: damaged: its offsets do not end at {end:,}. "
                    f"{rebuild(folder.parent)}"
                )
    bounds = tuple(np.cumsum([0, *(counts.documents for counts in sources)]).tolist())
    texts = tuple(
        side.documents[first + np.cumsum([0, *own])] if own else None
        for first, own in zip(bounds, pieces, strict=False)
    )
    return replace(side, bounds=bounds, texts=texts)


def _describe(array: NDArray[Any]) -> tuple[str, str] | NDArray[Any]:
    return (str(array.filename), array.dtype.str) if isinstance(array, np.memmap) else array


def _reopen(
    arrays: Sequence[tuple[str, str] | NDArray[Any]],
    bounds: tuple[int, ...],
    texts: tuple[NDArray[np.uint64] | None, ...],
) -> TokenStore:
    ids, sentences, documents, pairs = (
        _map(Path(each[0]), np.dtype(each[1])) if isinstance(each, tuple) else each for each in arrays
    )
    return TokenStore(ids, sentences, documents, pairs=pairs, bounds=bounds, texts=texts)


def _map(path: Path, dtype: np.dtype[Any]) -> NDArray[Any]:
    if path.stat().st_size == 0:  # an empty file cannot be mapped
        return np.zeros(0, dtype)
    array = np.memmap(path, dtype, mode="r")
    if array.nbytes > _MEMORY and isinstance(array.base, mmap.mmap):
        # A row is a few hundred bytes: data that the system reads ahead would leave memory before its use.
        array.base.madvise(mmap.MADV_RANDOM)
    return array
