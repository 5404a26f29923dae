"""The arrays of both sides -> those of a corpus of few documents, of which runs of sentences are held out."""

from __future__ import annotations

import os
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bertcli.store.few_documents import Piece, cut_documents, cut_progress
from bertcli.store.side_files import SideFiles
from bertcli.store.token_store import OFFSET_DTYPE, SIDES
from bertcli.store.writer import BuildProgress

CUT = "cut"
"""What the folders of cut sides are called until they are in place: `cut-train`."""
BLOCK = 1 << 20
"""Sentences copied at once."""


def cut_sides(folder: Path, dtype: np.dtype[Any], progress: BuildProgress, fraction: float) -> BuildProgress:
    """Write the cut sides beside the whole ones in `folder`, which stay; returns what they hold."""
    documents = [document for side in progress.sides.values() for document in side.first]
    pieces = cut_documents(documents, fraction)
    files = {side: SideFiles(folder / f"{CUT}-{side}", dtype, 0, sentences=0, tokens=0) for side in SIDES}
    tokens: list[int] = []
    try:
        before = 0
        for name, side in progress.sides.items():
            own = range(before, before + side.documents)
            before += side.documents
            if side.documents:
                tokens += _copy(
                    folder / name, dtype, [p for p in pieces if p.document in own], files=files, first=own[0]
                )
        for each in files.values():
            each.sync()
    finally:
        for each in files.values():
            each.close()
    return cut_progress(progress, pieces, tokens)


def put_in_place(folder: Path) -> None:
    """The cut sides take the place of the whole ones. A build that is killed meanwhile cannot go on."""
    for side in SIDES:
        shutil.rmtree(folder / side)
        os.rename(folder / f"{CUT}-{side}", folder / side)


def _copy(
    folder: Path, dtype: np.dtype[Any], pieces: Sequence[Piece], files: dict[str, SideFiles], first: int
) -> list[int]:
    """Append each piece to its side; `first` is the number of the folder's first document. Returns tokens."""
    ids: NDArray[Any] = np.memmap(folder / "ids.bin", dtype, mode="r")
    sentences, documents = (
        np.memmap(folder / f"{name}.bin", OFFSET_DTYPE, mode="r") for name in ("sentences", "documents")
    )
    tokens: list[int] = []
    for piece in pieces:
        begin = int(documents[piece.document - first])
        side, held = files[piece.side], files[piece.side].tokens
        for start in range(begin + piece.start, begin + piece.end, BLOCK):
            ends = sentences[start : min(start + BLOCK, begin + piece.end) + 1].astype(np.int64)
            side.append_sentences(np.asarray(ids[ends[0] : ends[-1]]), np.diff(ends).astype(np.uint32))
        side.end_documents(np.array([piece.end - piece.start]))
        tokens.append(side.tokens - held)
    return tokens
