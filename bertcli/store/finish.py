"""The end of a build: checks that the store can be used, and counts what is in it."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bertcli.errors import UserError
from bertcli.store.manifest import Manifest, SideCounts, SourceRecord
from bertcli.store.token_store import SIDES, ids_dtype
from bertcli.store.verify import ARRAYS, gather_hashes
from bertcli.store.writer import BuildProgress
from bertcli.text.tokenizer import Tokenizer

BLOCK = 1 << 22
"""Ids counted at once."""
WITHOUT = "set it to 0 to train without evaluation"


def check_heldout(progress: BuildProgress, fraction: float) -> None:
    """Raise `UserError` where no text is left to train on, or too little is held out for sentence pairs."""
    train, heldout = progress.sides["train"].documents, progress.sides["heldout"].documents
    stored = progress.cut_documents or train + heldout
    if stored == 0:
        raise UserError(
            "the corpus holds no text: no document gave a token; name files that do in corpus.files"
        )
    if fraction > 0.0 and heldout < 2:
        unit = " runs of sentences" if progress.cut_documents else ""
        mend = f"Give more text, or {WITHOUT}" if progress.cut_documents else _enough(progress)
        raise UserError(
            f"corpus.heldout_fraction: {fraction:g} of {_documents(stored)} holds out {heldout}{unit}; "
            f"evaluation needs two or more. {mend}"
        )
    if train == 0:
        raise UserError(
            f"corpus.heldout_fraction: {fraction:g} holds out all of {_documents(stored)}; lower it to train "
            f"on some, give more text, or {WITHOUT}"
        )


def heldout_line(progress: BuildProgress) -> str:
    """A line for the user about a corpus of few documents that was cut."""
    runs, documents = progress.sides["heldout"].documents, _documents(progress.cut_documents)
    return f"held out: {runs:,} runs of sentences, because the corpus has only {documents}"


def _enough(progress: BuildProgress) -> str:
    # The second smallest hash, rounded up to where a config has it in few digits.
    enough = math.ceil(progress.smallest_hashes[1] / 2**64 * 1000 + 1e-9) / 1000
    return f"Raise it to {enough:g}, give more documents (see corpus.document), or {WITHOUT}"


def _documents(number: int) -> str:
    return "1 document" if number == 1 else f"{number:,} documents"


def count_store(
    folder: Path,
    tokenizer: Tokenizer,
    progress: BuildProgress,
    options: dict[str, Any],
    sources: tuple[SourceRecord, ...],
) -> Manifest:
    """The manifest of the arrays in `folder`; reads the ids once, a block at a time."""
    uses = {side: _count_ids(folder / side / "ids.bin", tokenizer.vocab_size) for side in SIDES}
    counts = {
        name: SideCounts(
            **{key: value for key, value in vars(side).items() if key != "first"},
            unk_tokens=int(uses[name][tokenizer.unk_id]),
        )
        for name, side in progress.sides.items()
    }
    return Manifest(
        vocab_size=tokenizer.vocab_size,
        tokenizer_hash=tokenizer.hash,
        options=options,
        sources=sources,
        arrays={array: (folder / array).stat().st_size for array in ARRAYS},
        hashes=gather_hashes(folder),
        pieces={side: tuple(numbers) for side, numbers in progress.pieces.items()},
        train=counts["train"],
        heldout=counts["heldout"],
        dropped_documents=progress.dropped_documents,
        dropped_sentences=progress.dropped_sentences,
        unigram_entropy=unigram_entropy(uses["train"]),
    )


def unigram_entropy(uses: NDArray[np.int64]) -> float:
    """Entropy in nats of a token drawn by its share of `uses` [V]; 0 where all are 0."""
    seen = uses[uses > 0]
    shares = seen / max(1, seen.sum())
    return float(-(shares * np.log(shares)).sum())


def _count_ids(path: Path, vocab_size: int) -> NDArray[np.int64]:
    uses = np.zeros(vocab_size, np.int64)
    dtype = ids_dtype(vocab_size)
    with open(path, "rb") as file:
        while block := file.read(BLOCK * dtype.itemsize):
            uses += np.bincount(np.frombuffer(block, dtype), minlength=vocab_size)
    return uses
