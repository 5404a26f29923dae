"""A corpus of few documents: both sides, after documents are cut between them as the store does."""

from __future__ import annotations

import itertools
import tempfile
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from bertcli.store.few_documents import cut_documents, cut_progress
from bertcli.store.writer import FEW_DOCUMENTS

if TYPE_CHECKING:
    from bertcli.checks.corpus import CorpusCounts

SPOOL_BYTES = 32 << 20
"""Ids beyond this size go to a temporary file."""


class FewDocuments:
    """Keeps hash, ids and lengths of the stored documents as long as they are few."""

    def __init__(self) -> None:
        self._ids = tempfile.SpooledTemporaryFile(SPOOL_BYTES)  # noqa: SIM115  (closed with the object)
        self._documents: list[list[int]] = []
        """Content hash and sentences of each."""
        self._lengths: list[NDArray[np.uint32]] = []
        self._open: list[NDArray[np.uint32]] = []
        self._end = 0

    @property
    def are_many(self) -> bool:
        """Whether the corpus has enough documents to hold out some in full."""
        return len(self._documents) >= FEW_DOCUMENTS

    def add(self, ids: NDArray[np.uint32], lengths: NDArray[np.uint32]) -> None:
        """Add a piece of the open document."""
        if not self.are_many:
            self._ids.write(ids.astype(np.uint32, copy=False).tobytes())
            self._open.append(lengths)

    def end_document(self, content_hash: int, sentences: int) -> None:
        """End the open document. Once documents are many, nothing is kept."""
        if self.are_many:
            return
        self._documents.append([content_hash, sentences])
        self._lengths += self._open
        self._open, self._end = [], self._ids.tell()
        if self.are_many:
            self.close()
            self._lengths = []

    def close(self) -> None:
        """Close the temporary file."""
        self._ids.close()

    def drop_open(self) -> None:
        """Drop the open document: it has no token, or could not be read."""
        if self._open and not self.are_many:
            self._ids.seek(self._end)
            self._ids.truncate()
        self._open = []

    def cut(self, counts: CorpusCounts, heldout_fraction: float, tokenizes_all: bool) -> None:
        """Put into `counts` what each side holds.

        Without `tokenizes_all` all sampled tokens count as training tokens: their documents are not kept.
        """
        pieces = cut_documents(self._documents, heldout_fraction)
        if not tokenizes_all:
            counts.progress = cut_progress(counts.progress, pieces, [0] * len(pieces))
            counts.uses[0] += counts.uses[1]
            counts.uses[1] = 0
            return
        lengths = np.concatenate([np.zeros(0, np.uint32), *self._lengths])
        ends = np.cumsum([piece.end - piece.start for piece in pieces])
        bounds = np.concatenate([[0], np.cumsum(lengths, dtype=np.int64)])[np.concatenate([[0], ends])]
        counts.progress = cut_progress(counts.progress, pieces, np.diff(bounds).tolist())
        counts.uses[:] = 0
        self._ids.seek(0)
        sides = list(counts.progress.sides)
        for piece, (start, end) in zip(pieces, itertools.pairwise(bounds.tolist()), strict=True):
            ids = np.frombuffer(self._ids.read((end - start) * 4), np.uint32)
            counts.uses[sides.index(piece.side)] += np.bincount(ids, minlength=counts.uses.shape[1])
