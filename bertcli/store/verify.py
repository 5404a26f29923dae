"""Whether a store's arrays are what was written: block by block, by the hashes made while they were built."""

from __future__ import annotations

import itertools
import os
import random
import shutil
from bisect import bisect_right
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from bertcli.errors import UserError
from bertcli.files import file_hash
from bertcli.store.hashed_file import BLOCK_BYTES, HASH_BYTES, SUFFIX, block_hash, num_blocks
from bertcli.store.manifest import rebuild
from bertcli.store.progress import Report
from bertcli.store.side_files import NAMES
from bertcli.store.token_store import HASHES, SIDES, OpenStore

ARRAYS = tuple(f"{side}/{name}.bin" for side in SIDES for name in NAMES)
WHOLE_BYTES = 2 * 10**9
"""Of arrays; up to so many all are read, in a second or two."""
DRAWN_BLOCKS = 1000
_AT_ONCE = 64
"""Blocks that a thread takes."""


def gather_hashes(folder: Path) -> str:
    """Write `hashes.bin` of what `HashedFile` left beside each array; returns its own hash, hexadecimal."""
    path = folder / HASHES
    with open(path, "wb") as whole:
        for name in ARRAYS:
            with open((folder / name).with_suffix(SUFFIX), "rb") as part:
                shutil.copyfileobj(part, whole)
        whole.flush()
        os.fsync(whole.fileno())
    return file_hash(path, "blake2b")


def drop_gathered(folder: Path) -> None:
    """Remove what `gather_hashes` read: a build that is killed before its end still needs it."""
    for name in ARRAYS:
        (folder / name).with_suffix(SUFFIX).unlink(missing_ok=True)


def check_arrays(store: OpenStore, seed: int, report: Report, whole: bool = False) -> None:
    """Compare the arrays with their hashes: all of them, or of more than 2 GB 1,000 blocks drawn by `seed`.

    Args:
        whole: read all, whatever the size.
        report: is told where blocks were drawn, and with `whole` what was read.

    Raises:
        UserError: a block that is not what was written, or cannot be read.
    """
    sizes = [store.manifest.arrays[name] for name in ARRAYS]
    blocks, size = sum(map(num_blocks, sizes)), sum(sizes)
    if whole:
        report(f"reading all of {store.folder}: {size / 1e6:,.1f} MB in {blocks:,} blocks")
    if whole or size <= WHOLE_BYTES:
        numbers: Sequence[int] = range(blocks)
        if file_hash(store.folder / HASHES, "blake2b") != store.manifest.hashes:
            raise UserError(
                f"{store.folder / HASHES}: damaged: it is not what was written. {rebuild(store.folder)}"
            )
    else:
        numbers = sorted(random.Random(seed).sample(range(blocks), min(DRAWN_BLOCKS, blocks)))
        report(
            f"{store.folder}: {len(numbers):,} of {blocks:,} blocks are compared with their hashes, drawn by "
            "the seed; all of them by bertcli prepare CONFIG --verify"
        )
    wrong = _wrong_blocks(store.folder, sizes, numbers)
    if wrong:
        more = f", nor are {len(wrong) - 1:,} other blocks" if len(wrong) > 1 else ""
        raise UserError(f"{wrong[0]} is not what was written{more}. {rebuild(store.folder)}")
    if whole:
        report("every block is what was written")


def _wrong_blocks(folder: Path, sizes: Sequence[int], numbers: Sequence[int]) -> list[str]:
    """Where each damaged block stands, of those asked for by their number over all arrays."""
    starts = [0, *itertools.accumulate(map(num_blocks, sizes))]
    with open(folder / HASHES, "rb") as hashes:

        def check(some: Sequence[int]) -> list[str]:
            return [place for number in some if (place := compare(number)) is not None]

        def compare(number: int) -> str | None:
            array = bisect_right(starts, number) - 1
            path, offset = folder / ARRAYS[array], (number - starts[array]) * BLOCK_BYTES
            written = os.pread(hashes.fileno(), HASH_BYTES, number * HASH_BYTES)
            place = f"{path}: damaged: byte {offset:,} to {min(offset + BLOCK_BYTES, sizes[array]):,}"
            try:
                with open(path, "rb", buffering=0) as file:
                    file.seek(offset)
                    return None if block_hash(file.read(BLOCK_BYTES)) == written else place
            except OSError as error:
                return f"{place} ({(error.strerror or 'cannot be read').lower()})"

        parts = [numbers[i : i + _AT_ONCE] for i in range(0, len(numbers), _AT_ONCE)]
        with ThreadPoolExecutor(os.cpu_count()) as threads:
            return list(itertools.chain.from_iterable(threads.map(check, parts)))
