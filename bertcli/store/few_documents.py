"""A corpus of few documents: runs of sentences are held out, for a share of the documents might be none.

A document is cut into pieces where a held-out run begins or ends. Each piece is a document of its own on its
side, so that no pair of sentences crosses from one side to the other, or a gap. The pieces of one document
are no other documents to each other (`TokenStore.sources`).
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

from bertcli.store.token_store import SIDES
from bertcli.store.writer import FEW_DOCUMENTS, BuildProgress, SideProgress

RUN_SENTENCES = 64
"""Most sentences of a held-out run: enough for the longest rows."""
MOST_RUNS = 10_000
"""A corpus of more text than so many runs of that length gets longer ones."""


class Piece(NamedTuple):
    """Sentences `start` to `end` of a document."""

    document: int
    start: int
    end: int
    side: str


class _Rank(NamedTuple):
    """By content. The end of a document, or a short one whole, comes last: train keeps some of each."""

    is_end: bool
    digest: bytes


def is_cut(progress: BuildProgress, heldout_fraction: float) -> bool:
    """Whether runs of sentences are held out, and not documents."""
    stored = sum(side.documents for side in progress.sides.values())
    return heldout_fraction > 0.0 and 0 < stored < FEW_DOCUMENTS


def cut_documents(documents: Sequence[Sequence[int]], fraction: float) -> list[Piece]:
    """The pieces of all documents, in order. About `fraction` of the sentences are held out,
    in two runs or more.

    The first two runs are of two documents, for a NotNext pair needs both, unless only one document is longer
    than a run: then the held-out text measures MLM alone. Up to a fraction of a half, at least two documents
    keep text to train on, where the text has two documents and four sentences.

    Args:
        documents: content hash and number of sentences of each. Their order changes no document's pieces.
    """
    total, longest = (f(sentences for _, sentences in documents) for f in (sum, max))
    wanted = fraction * total
    length = max(2, min(int(wanted) // 4, max(RUN_SENTENCES, total // MOST_RUNS)))
    length = max(1, min(length, longest // 2, total // 4))
    ranked = sorted(
        (_rank(content, start, is_end=start + length >= sentences), number, start)
        for number, (content, sentences) in enumerate(documents)
        for start in range(0, sentences, length)
    )
    first = ranked[0]
    other = [c for c in ranked if c[1] != first[1] and not c[0].is_end][:1]
    order = [first, *other, *(c for c in ranked[1:] if c not in other)]
    chosen: list[set[int]] = [set() for _ in documents]
    held = 0
    for runs, (_, number, start) in enumerate(order):
        if runs >= 2 and held >= wanted - length / 2:
            break
        chosen[number].add(start)
        held += min(length, documents[number][1] - start)
    return [
        piece
        for number, (_, sentences) in enumerate(documents)
        for piece in _pieces(number, sentences, chosen[number], length=length)
    ]


def cut_progress(progress: BuildProgress, pieces: Sequence[Piece], tokens: Sequence[int]) -> BuildProgress:
    """What both sides hold once the documents are cut; words and bytes are shared out by sentences.

    `tokens`: of each piece.
    """
    whole = list(progress.sides.values())
    sides = {name: SideProgress() for name in SIDES}
    counts: dict[str, dict[int, int]] = {name: {} for name in SIDES}
    for piece, number in zip(pieces, tokens, strict=True):
        side = sides[piece.side]
        side.documents += 1
        side.one_sentence_documents += piece.end - piece.start == 1
        side.sentences += piece.end - piece.start
        side.tokens += number
        counts[piece.side][piece.document] = counts[piece.side].get(piece.document, 0) + 1
    sentences = sum(side.sentences for side in sides.values())
    heldout = sides["heldout"]
    for name in ("words", "bytes"):
        total = sum(getattr(side, name) for side in whole)
        setattr(heldout, name, total * heldout.sentences // sentences)
        setattr(sides["train"], name, total - getattr(heldout, name))
    return replace(
        progress,
        sides=sides,
        cut_documents=sum(side.documents for side in whole),
        pieces={name: list(found.values()) for name, found in counts.items()},
    )


def _rank(content: int, start: int, *, is_end: bool) -> _Rank:
    return _Rank(is_end, hashlib.blake2b(f"{content} {start}".encode(), digest_size=8).digest())


def _pieces(number: int, sentences: int, chosen: set[int], length: int) -> list[Piece]:
    pieces: list[Piece] = []
    for start in range(0, sentences, length):
        side, end = "heldout" if start in chosen else "train", min(start + length, sentences)
        if pieces and pieces[-1].side == side == "train":
            pieces[-1] = pieces[-1]._replace(end=end)
        else:
            pieces.append(Piece(number, start, end, side=side))
    return pieces
