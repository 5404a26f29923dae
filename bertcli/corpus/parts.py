"""Parts of a store: the parts of several processes are joined; few documents are cut between both sides."""

import hashlib
import itertools
import os
import shutil
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import ExitStack, closing
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from bertcli.corpus.manifest import SideCounts
from bertcli.corpus.token_store import OFFSET_DTYPE, SIDES
from bertcli.corpus.writer import FEW_DOCUMENTS, BuildProgress, SideFiles, SideProgress, SourceProgress

RUN_SENTENCES = 64
"""The most sentences of a held-out run; enough for the longest rows."""
MOST_RUNS = 10_000
"""The most runs that a corpus is divided into; if it needs more, runs are longer."""


class Piece(NamedTuple):
    """The sentences `start` to `end` of a document."""

    document: int
    start: int
    end: int
    side: str


def is_cut(progress: SourceProgress, heldout_fraction: float) -> bool:
    """True if runs of sentences of a source are held out instead of documents."""
    return heldout_fraction > 0.0 and 0 < progress.text.documents < FEW_DOCUMENTS


def cut_documents(documents: Sequence[Sequence[int]], fraction: float) -> list[Piece]:
    """The pieces of all documents, in order; about `fraction` of the sentences are held out, in two or more
    runs.

    The first two runs come from two documents, because a NotNext pair needs both. If only one document is
    longer than a run, the held-out text measures MLM alone. At least two documents keep text to train on, for
    fractions up to a half and a text of at least two documents and four sentences.

    Args:
        documents: the content hash and the number of sentences of each document. Their order does not change
            the pieces of a document.
    """
    total, longest = (f(sentences for _, sentences in documents) for f in (sum, max))
    target = fraction * total
    length = max(2, min(int(target) // 4, max(RUN_SENTENCES, total // MOST_RUNS)))
    length = max(1, min(length, longest // 2, total // 4))
    # Runs are sorted by content hash. The run at a document's end, which may be the whole document, comes
    # last, so that training keeps a part of each document.
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


def cut_progress(progress: SourceProgress, pieces: Sequence[Piece], tokens: Sequence[int]) -> SourceProgress:
    """The counts of both sides after the documents are cut; words and bytes are divided by sentences.

    `tokens` has the number of tokens of each piece.
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


T = TypeVar("T")


class Team(Protocol):
    """The processes that build a store together on a shared disk, such as `bertcli.training.ranks`.

    What stands here is a team of one process.
    """

    def num_ranks(self) -> int:
        """The number of parts that the store is built in."""
        return 1

    def num_local_ranks(self) -> int:
        """The number of these processes on this machine."""
        return 1

    def on_first(self, work: Callable[[], T]) -> T:
        """Return the result of `work`, which only the first process does."""
        return work()

    def for_parts(self, number: int, work: Callable[[int], None]) -> None:
        """Do `work` for the parts 0 to `number`, and wait for the last. At most `num_ranks` are asked for."""
        for part in range(number):
            work(part)


class Alone(Team):
    """A team of one process."""


def part_folder(folder: Path, part: int, num_parts: int) -> Path:
    """The folder in which a part is built; a single part is built in `folder` itself."""
    return folder if num_parts == 1 else folder / f"part-{part}-of-{num_parts}"


def part_folders(folder: Path) -> list[Path]:
    """The folders of all parts in `folder`, also those of an interrupted build by another number of ranks."""
    return list(folder.glob("part-*-of-*"))


def share_out(sizes: Sequence[int], num_parts: int) -> list[range]:
    """Files of `sizes` bytes -> the range of consecutive files of each part; parts have similar sizes."""
    ends = np.cumsum([0, *sizes])
    middles = (ends[:-1] + ends[1:]) / 2
    bounds = np.searchsorted(middles, np.arange(num_parts + 1) * ends[-1] / num_parts).tolist()
    bounds[-1] = len(sizes)
    return [range(first, last) for first, last in itertools.pairwise(bounds)]


def join_parts(
    folder: Path, parts: Sequence[tuple[Path, BuildProgress]], dtype: np.dtype[Any]
) -> BuildProgress:
    """Write the arrays of all parts, one after the other, into `folder`. Return the sum of their progress."""
    for name in SIDES:
        with closing(SideFiles(folder / name, dtype)) as files:
            for part, progress in parts:
                files.append_side(part / name, progress.side(name))
            files.sync()
    total = BuildProgress.begin(len(parts[0][1].sources))
    for _, progress in parts:
        for source, own in zip(total.sources, progress.sources, strict=True):
            for name, side in own.sides.items():
                for counter, value in vars(side).items():
                    setattr(source.sides[name], counter, getattr(source.sides[name], counter) + value)
            source.dropped_documents += own.dropped_documents
            source.dropped_sentences += own.dropped_sentences
            source.smallest_hashes = sorted([*source.smallest_hashes, *own.smallest_hashes])[:2]
    return total


CUT = "cut"
"""The prefix of the folders of the cut sides until they are in place: `cut-train`."""
BLOCK = 1 << 20
"""The number of sentences copied at once."""


def cut_sides(folder: Path, dtype: np.dtype[Any], progress: BuildProgress, fraction: float) -> BuildProgress:
    """Write the sides anew into `folder`, where the uncut ones stay, with cut documents for each source that
    has few. Return the new counts."""
    sources: list[SourceProgress] = []
    before = {side: SideCounts() for side in SIDES}
    with ExitStack() as opened:
        files = {
            side: opened.enter_context(closing(SideFiles(folder / f"{CUT}-{side}", dtype))) for side in SIDES
        }
        for source in progress.sources:
            if is_cut(source, fraction):
                sources.append(
                    _cut_source(folder, dtype, source, files=files, before=before, fraction=fraction)
                )
            else:
                sources.append(source)
                for name, side in source.sides.items():
                    files[name].append_side(folder / name, side, before[name])
            before = {name: before[name] + side for name, side in source.sides.items()}
        for each in files.values():
            each.sync()
    return replace(progress, sources=sources)


def _cut_source(
    folder: Path,
    dtype: np.dtype[Any],
    source: SourceProgress,
    files: dict[str, SideFiles],
    before: dict[str, SideCounts],
    fraction: float,
) -> SourceProgress:
    """Append the pieces of a source's documents; `before` counts the sources before it on each side."""
    documents = [document for side in source.sides.values() for document in side.first]
    pieces = cut_documents(documents, fraction)
    tokens: list[int] = []
    first = 0
    for name, side in source.sides.items():
        own = [piece for piece in pieces if first <= piece.document < first + side.documents]
        if own:
            tokens += _copy(folder / name, dtype, own, files=files, first=first - before[name].documents)
        first += side.documents
    return cut_progress(source, pieces, tokens)


def put_in_place(folder: Path) -> None:
    """Replace the uncut sides by the cut ones. A build that is killed in the meantime cannot be resumed."""
    for side in SIDES:
        shutil.rmtree(folder / side)
        os.rename(folder / f"{CUT}-{side}", folder / side)


def _copy(
    folder: Path, dtype: np.dtype[Any], pieces: Sequence[Piece], files: dict[str, SideFiles], first: int
) -> list[int]:
    """Append each piece to its side. Return the number of tokens of each piece.

    `first` is the number that the folder's first document would have.
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
