"""Small token stores in memory, whose every token tells where it stands."""

from __future__ import annotations

import numpy as np

from bertcli.batches.slots import Slots, draw_slots
from bertcli.corpus.token_store import TokenStore

FIRST_TOKEN = 5
"""Below it lie the special ids."""


def make_store(
    documents: list[list[int]], vocab_size: int = 1 << 31, bounds: tuple[int, ...] = ()
) -> TokenStore:
    """A store of documents given as sentence lengths; token number i has id FIRST_TOKEN + i (modulo).

    `bounds`: the first document of each source, then the number of documents.
    """
    lengths = [length for document in documents for length in document]
    document_starts = np.cumsum([0, *map(len, documents)]).astype(np.uint64)
    num_tokens = sum(lengths)
    return TokenStore(
        ids=(np.arange(num_tokens) % (vocab_size - FIRST_TOKEN) + FIRST_TOKEN).astype(np.uint32),
        sentences=np.cumsum([0, *lengths]).astype(np.uint64),
        documents=document_starts,
        pairs=document_starts - np.arange(len(document_starts), dtype=np.uint64),
        bounds=bounds,
    )


def document_of(store: TokenStore, token: np.ndarray) -> np.ndarray:
    """By counting, not by searching: which document each token offset lies in."""
    tokens_before = store.sentences[store.documents[1:].astype(np.int64)].astype(np.int64)
    return (token[:, None] >= tokens_before[None, :]).sum(axis=1)


def one_source_slots(seed: int, step: int, before: int, batch_size: int) -> Slots:
    """The slots of a step whose rows come from one source."""
    return draw_slots(seed, step, np.array([before]), rows=np.array([batch_size]))
