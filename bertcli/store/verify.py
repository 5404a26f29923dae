"""Compares the arrays of a store, block by block, with the hashes that were computed when it was built."""

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
from bertcli.files import file_hash, flush_to_disk, open_plain
from bertcli.store.hashed_file import BLOCK_BYTES, HASH_BYTES, SUFFIX, block_hash, num_blocks
from bertcli.store.manifest import rebuild
from bertcli.store.progress import Report
from bertcli.store.side_files import NAMES
from bertcli.store.token_store import HASHES, SIDES, OpenStore

ARRAYS = tuple(f"{side}/{name}.bin" for side in SIDES for name in NAMES)
FULL_BYTES = 2 * 10**9
"""Arrays of up to this size are always compared in full, which takes a second or two."""
DRAWN_BLOCKS = 1000
_AT_ONCE = 64
"""Blocks of one piece of work of a thread."""


def gather_hashes(folder: Path) -> str:
    """Write `hashes.bin` from the files that `HashedFile` left; returns its own hash, hexadecimal."""
    path = folder / HASHES
    with open(path, "wb") as gathered:
        for name in ARRAYS:
            with open((folder / name).with_suffix(SUFFIX), "rb") as part:
                shutil.copyfileobj(part, gathered)
        flush_to_disk(gathered)
    return file_hash(path, "blake2b")


def drop_gathered(folder: Path) -> None:
    """Remove the files that `gather_hashes` read; only a finished build no longer needs them."""
    for name in ARRAYS:
        (folder / name).with_suffix(SUFFIX).unlink(missing_ok=True)


def check_arrays(store: OpenStore, seed: int, report: Report, every_block: bool = False) -> None:
    """Compare blocks of the arrays with their hashes: all; of more than 2 GB, 1,000 drawn by `seed`.

    Args:
        every_block: compare all, whatever the size.
        report: takes a line where blocks were drawn; with `every_block`, lines on what was read.

    Raises:
        UserError: a block that cannot be read, or does not match its hash.
    """
    sizes = [store.manifest.arrays[name] for name in ARRAYS]
    blocks, size = sum(map(num_blocks, sizes)), sum(sizes)
    if every_block:
        report(f"reading all of {store.folder}: {size / 1e6:,.1f} MB in {blocks:,} blocks")
    if every_block or size <= FULL_BYTES:
        numbers: Sequence[int] = range(blocks)
        if file_hash(store.folder / HASHES, "blake2b") != store.manifest.hashes:
            raise UserError(
                f"{store.folder / HASHES}: damaged: it is not what was written. {rebuild(store.folder)}"
            )
    else:
        numbers = sorted(random.Random(seed).sample(range(blocks), min(DRAWN_BLOCKS, blocks)))
        report(
            f"{store.folder}: comparing {len(numbers):,} of {blocks:,} blocks, drawn by the seed, with their "
            "hashes; bertcli prepare CONFIG --verify compares all"
        )
    wrong = _wrong_blocks(store.folder, sizes, numbers)
    if wrong:
        more = f", nor are {len(wrong) - 1:,} other blocks" if len(wrong) > 1 else ""
        raise UserError(f"{wrong[0]} is not what was written{more}. {rebuild(store.folder)}")
    if every_block:
        report("every block is what was written")


def _wrong_blocks(folder: Path, sizes: Sequence[int], numbers: Sequence[int]) -> list[str]:
    """The places of the damaged blocks among `numbers`, which count over all arrays."""
    starts = [0, *itertools.accumulate(map(num_blocks, sizes))]
    with open_plain(folder / HASHES) as hashes:

        def check(some: Sequence[int]) -> list[str]:
            return [place for number in some if (place := compare(number)) is not None]

        def compare(number: int) -> str | None:
            array = bisect_right(starts, number) - 1
            path, offset = folder / ARRAYS[array], (number - starts[array]) * BLOCK_BYTES
            written = os.pread(hashes.fileno(), HASH_BYTES, number * HASH_BYTES)
            place = f"{path}: damaged: byte {offset:,} to {min(offset + BLOCK_BYTES, sizes[array]):,}"
            try:
                with open_plain(path) as file:
                    file.seek(offset)
                    return None if block_hash(file.read(BLOCK_BYTES)) == written else place
            except OSError as error:
                return f"{place} ({(error.strerror or 'cannot be read').lower()})"

        parts = [numbers[i : i + _AT_ONCE] for i in range(0, len(numbers), _AT_ONCE)]
        with ThreadPoolExecutor(os.cpu_count()) as threads:
            return list(itertools.chain.from_iterable(threads.map(check, parts)))
