"""A corpus of few documents: runs of sentences are held out, because a share of the documents might be none.

A document is cut into pieces where a held-out run begins or ends. Each piece is a document of its own on its
side, so that no sentence pair crosses a gap, or from one side to the other. A piece never serves as another
document for a piece of the same document (`TokenStore.sources`).
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

from bertcli.store.token_store import SIDES
from bertcli.store.writer import FEW_DOCUMENTS, BuildProgress, SideProgress

RUN_SENTENCES = 64
"""Length limit of a held-out run: enough for the longest rows."""
MOST_RUNS = 10_000
"""A corpus that would need more runs than this gets longer ones."""


class Piece(NamedTuple):
    """Sentences `start` to `end` of a document."""

    document: int
    start: int
    end: int
    side: str


def is_cut(progress: BuildProgress, heldout_fraction: float) -> bool:
    """Whether runs of sentences are held out, not documents."""
    stored = sum(side.documents for side in progress.sides.values())
    return heldout_fraction > 0.0 and 0 < stored < FEW_DOCUMENTS


def cut_documents(documents: Sequence[Sequence[int]], fraction: float) -> list[Piece]:
    """The pieces of all documents, in order. About `fraction` of the sentences are held out, in two or more
    runs.

    The first two runs are of two documents, because a NotNext pair needs both. Where only one document is
    longer than a run, the held-out text measures MLM alone. For fractions up to a half, and a text of at
    least two documents and four sentences, at least two documents keep text to train on.

    Args:
        documents: content hash and number of sentences of each. Their order changes no document's pieces.
    """
    total, longest = (f(sentences for _, sentences in documents) for f in (sum, max))
    target = fraction * total
    length = max(2, min(int(target) // 4, max(RUN_SENTENCES, total // MOST_RUNS)))
    length = max(1, min(length, longest // 2, total // 4))
    # By content; the run at a document's end, which may be all of it, comes last: train keeps some of each.
    first, *rest = sorted(
        (start + length >= sentences, _digest(content, start), number, start)
        for number, (content, sentences) in enumerate(documents)
        for start in range(0, sentences, length)
    )
    other = [run for run in rest if run[2] != first[2] and not run[0]][:1]
    chosen: list[set[int]] = [set() for _ in documents]
    held = 0
    for runs, (_, _, number, start) in enumerate([first, *other, *(run for run in rest if run not in other)]):
        if runs >= 2 and held >= target - length / 2:
            break
        chosen[number].add(start)
        held += min(length, documents[number][1] - start)
    return [
        piece
        for number, (_, sentences) in enumerate(documents)
        for piece in _pieces(number, sentences, chosen[number], length=length)
    ]


def cut_progress(progress: BuildProgress, pieces: Sequence[Piece], tokens: Sequence[int]) -> BuildProgress:
    """What both sides hold once the documents are cut; words and bytes are divided by sentences.

    `tokens`: of each piece.
    """
    uncut = list(progress.sides.values())
    sides = {name: SideProgress() for name in SIDES}
    counts: dict[str, Counter[int]] = {name: Counter() for name in SIDES}
    for piece, number in zip(pieces, tokens, strict=True):
        side = sides[piece.side]
        side.documents += 1
        side.one_sentence_documents += piece.end - piece.start == 1
        side.sentences += piece.end - piece.start
        side.tokens += number
        counts[piece.side][piece.document] += 1
    sentences = sum(side.sentences for side in sides.values())
    heldout = sides["heldout"]
    for name in ("words", "bytes"):
        total = sum(getattr(side, name) for side in uncut)
        setattr(heldout, name, total * heldout.sentences // sentences)
        setattr(sides["train"], name, total - getattr(heldout, name))
    return replace(
        progress,
        sides=sides,
        cut_documents=sum(side.documents for side in uncut),
        pieces={name: list(found.values()) for name, found in counts.items()},
    )


def _digest(content: int, start: int) -> bytes:
    return hashlib.blake2b(f"{content} {start}".encode(), digest_size=8).digest()


def _pieces(number: int, sentences: int, chosen: set[int], length: int) -> list[Piece]:
    pieces: list[Piece] = []
    for start in range(0, sentences, length):
        side, end = "heldout" if start in chosen else "train", min(start + length, sentences)
        if pieces and pieces[-1].side == side == "train":
            pieces[-1] = pieces[-1]._replace(end=end)
        else:
            pieces.append(Piece(number, start, end, side=side))
    return pieces
