"""A store built by several processes: each makes a part from its own files; then the parts are joined."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any, Protocol, TypeVar

import numpy as np

from bertcli.store.side_files import SideFiles
from bertcli.store.token_store import SIDES
from bertcli.store.writer import BuildProgress

T = TypeVar("T")


class Team(Protocol):
    """The processes that build a store together on a shared disk, such as `bertcli.distributed.ranks`."""

    def rank(self) -> int:
        """The number of this process."""
        ...

    def num_ranks(self) -> int:
        """How many processes build the store together."""
        ...

    def num_local_ranks(self) -> int:
        """How many of them run on this machine."""
        ...

    def on_first(self, work: Callable[[], T]) -> T:
        """The result of `work`, which only the first process does."""
        ...

    def on_each(self, work: Callable[[], T]) -> T:
        """The result of `work`, which each process does; all of them wait for the last."""
        ...


class Alone:
    """A team of one."""

    def rank(self) -> int:
        """0."""
        return 0

    def num_ranks(self) -> int:
        """1."""
        return 1

    def num_local_ranks(self) -> int:
        """1."""
        return 1

    def on_first(self, work: Callable[[], T]) -> T:
        """Do the work: there is no other process."""
        return work()

    def on_each(self, work: Callable[[], T]) -> T:
        """Do the work: there is no other process."""
        return work()


def part_folder(folder: Path, part: int, num_parts: int) -> Path:
    """Where a part is built; a single part is built in `folder` itself."""
    return folder if num_parts == 1 else folder / f"part-{part}-of-{num_parts}"


def part_folders(folder: Path) -> list[Path]:
    """All parts in `folder`, also those of an interrupted build by another number of ranks."""
    return list(folder.glob("part-*-of-*"))


def share_out(sizes: Sequence[int], num_parts: int) -> list[range]:
    """Files of `sizes` bytes -> the numbers of each part's files: neighbors, in parts of similar size."""
    ends = np.cumsum([0, *sizes])
    middles = (ends[:-1] + ends[1:]) / 2
    bounds = np.searchsorted(middles, np.arange(num_parts + 1) * ends[-1] / num_parts).tolist()
    bounds[-1] = len(sizes)
    return [range(first, last) for first, last in itertools.pairwise(bounds)]


def join_parts(
    folder: Path, parts: Sequence[tuple[Path, BuildProgress]], dtype: np.dtype[Any]
) -> BuildProgress:
    """Write the arrays of all parts, one after the other, into `folder`; returns their joint progress."""
    total = BuildProgress()
    for name in SIDES:
        with closing(SideFiles(folder / name, dtype)) as files:
            for part, progress in parts:
                side = progress.sides[name]
                files.append_side(part / name, side.documents, side.sentences, side.tokens)
            files.sync()
    for _, progress in parts:
        for name, side in progress.sides.items():
            for counter, value in vars(side).items():
                setattr(total.sides[name], counter, getattr(total.sides[name], counter) + value)
        total.dropped_documents += progress.dropped_documents
        total.dropped_sentences += progress.dropped_sentences
        total.smallest_hashes = sorted([*total.smallest_hashes, *progress.smallest_hashes])[:2]
    return total
