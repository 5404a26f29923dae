"""The arrays of both sides -> those of a corpus of few documents, where runs of sentences are held out."""

from __future__ import annotations

import os
import shutil
from collections.abc import Sequence
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bertcli.store.few_documents import Piece, cut_documents, cut_progress
from bertcli.store.side_files import SideFiles
from bertcli.store.token_store import OFFSET_DTYPE, SIDES
from bertcli.store.writer import BuildProgress

CUT = "cut"
"""Prefix of the folders of the cut sides until they are in place: `cut-train`."""
BLOCK = 1 << 20
"""Sentences copied at once."""


def cut_sides(folder: Path, dtype: np.dtype[Any], progress: BuildProgress, fraction: float) -> BuildProgress:
    """Write the cut sides into `folder`, where the uncut ones stay; returns what the cut ones hold."""
    documents = [document for side in progress.sides.values() for document in side.first]
    pieces = cut_documents(documents, fraction)
    tokens: list[int] = []
    first = 0
    with ExitStack() as opened:
        files = {
            side: opened.enter_context(closing(SideFiles(folder / f"{CUT}-{side}", dtype))) for side in SIDES
        }
        for name, side in progress.sides.items():
            own = [piece for piece in pieces if first <= piece.document < first + side.documents]
            if own:
                tokens += _copy(folder / name, dtype, own, files=files, first=first)
            first += side.documents
        for each in files.values():
            each.sync()
    return cut_progress(progress, pieces, tokens)


def put_in_place(folder: Path) -> None:
    """Replace the uncut sides by the cut ones. A build that is killed meanwhile cannot be resumed."""
    for side in SIDES:
        shutil.rmtree(folder / side)
        os.rename(folder / f"{CUT}-{side}", folder / side)


def _copy(
    folder: Path, dtype: np.dtype[Any], pieces: Sequence[Piece], files: dict[str, SideFiles], first: int
) -> list[int]:
    """Append each piece to its side; `first`: the number of the folder's first document.

    Returns the number of tokens of each piece.
    """
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
