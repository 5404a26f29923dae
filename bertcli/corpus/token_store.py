"""The token store: a folder of memory-mapped arrays that opens equally fast at any size of the corpus.

    store/manifest.json         files, options and counts, written last (`manifest.py`)
          tokenizer/            vocab.txt, tokenizer.json, tokenizer_config.json
          train/, heldout/      ids.bin sentences.bin documents.bin pairs.bin, little-endian, no header
          hashes.bin            the hash of each block of 1 MiB of those, in this order (`finish.py`)

Offsets nest: a document is a run of sentences, a sentence is a run of ids.
"""

import mmap
import os
from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bertcli.corpus import blocks
from bertcli.corpus.manifest import MANIFEST, Manifest, SideCounts, read_manifest, rebuild
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
    """One side of a store, read-only.

    Attributes:
        ids: uint16 (uint32 for a vocabulary over 65,536) [tokens]; no special tokens.
        sentences: uint64 [num_sentences + 1]; the start of each sentence in `ids`, then the end.
        documents: uint64 [num_documents + 1]; the start of each document in `sentences`, then the end.
        pairs: uint64 [num_documents + 1]; the number of sentence boundaries inside the documents before
            document d. It is documents[d] - d, because every document has a sentence.
        texts: the start in `sentences` of each document of the text, then the end, if documents here are
            pieces of those; else None.
    """

    ids: NDArray[Any]
    sentences: NDArray[np.uint64]
    documents: NDArray[np.uint64]
    pairs: NDArray[np.uint64]
    texts: NDArray[np.uint64] | None = None

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle the paths instead of the arrays: loader processes map the files again without a copy."""
        return _reopen, tuple(_describe(getattr(self, field.name)) for field in fields(self))

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
        return len(self.ids)

    @property
    def num_sentences(self) -> int:
        """The number of sentences of all documents."""
        return len(self.sentences) - 1

    @property
    def num_documents(self) -> int:
        """The number of documents of this side."""
        return len(self.documents) - 1

    @property
    def num_texts(self) -> int:
        """The number of documents of the text; all pieces of a document count once."""
        return self.num_documents if self.texts is None else len(self.texts) - 1

    @property
    def num_pairs(self) -> int:
        """The number of places between two sentences of one document; each gives a true pair."""
        return int(self.pairs[-1])


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
    if (
        sizes != manifest.arrays
        or manifest.pieces.keys() != sides.keys()
        or any(sum(manifest.pieces[side]) not in (0, counts.documents) for side, counts in sides.items())
    ):
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
        _open_side(folder / side, counts, manifest.pieces[side], ids=dtype) for side, counts in sides.items()
    )
    return OpenStore(folder, train, heldout, tokenizer=tokenizer, manifest=manifest)


def array_sizes(counts: SideCounts, ids: np.dtype[Any]) -> dict[str, int]:
    """The name of each array of a side -> its bytes; `ids`: the dtype of the ids."""
    sentences, documents = (8 * (number + 1) for number in (counts.sentences, counts.documents))
    return dict(zip(NAMES, (counts.tokens * ids.itemsize, sentences, documents, documents), strict=True))


def ids_dtype(vocab_size: int) -> np.dtype[Any]:
    """The smallest dtype, uint16 or uint32, that holds every id."""
    return np.dtype("<u2") if vocab_size <= 1 << 16 else np.dtype("<u4")


def _open_side(folder: Path, counts: SideCounts, pieces: Sequence[int], ids: np.dtype[Any]) -> TokenStore:
    offsets = (_map(folder / f"{name}.bin", OFFSET_DTYPE) for name in ("sentences", "documents", "pairs"))
    side = TokenStore(_map(folder / "ids.bin", ids), *offsets)
    last = {
        "sentences": (side.sentences, counts.tokens),
        "documents": (side.documents, counts.sentences),
        "pairs": (side.pairs, counts.sentences - counts.documents),
    }
    for name, (array, end) in last.items():
        if array[0] != 0 or array[-1] != end:
            raise UserError(
                f"{folder / name}.bin: damaged: its offsets do not end at {end:,}. {rebuild(folder.parent)}"
            )
    return replace(side, texts=side.documents[np.cumsum([0, *pieces])]) if pieces else side


def _describe(array: NDArray[Any] | None) -> tuple[str, str] | NDArray[Any] | None:
    return (str(array.filename), array.dtype.str) if isinstance(array, np.memmap) else array


def _reopen(*arrays: tuple[str, str] | NDArray[Any] | None) -> TokenStore:
    opened = (_map(Path(a[0]), np.dtype(a[1])) if isinstance(a, tuple) else a for a in arrays)
    return TokenStore(*opened)  # pyright: ignore[reportArgumentType]


def _map(path: Path, dtype: np.dtype[Any]) -> NDArray[Any]:
    if path.stat().st_size == 0:  # an empty file cannot be mapped
        return np.zeros(0, dtype)
    array = np.memmap(path, dtype, mode="r")
    if array.nbytes > _MEMORY and isinstance(array.base, mmap.mmap):
        # A row is a few hundred bytes: data that the system reads ahead would leave memory before its use.
        array.base.madvise(mmap.MADV_RANDOM)
    return array
