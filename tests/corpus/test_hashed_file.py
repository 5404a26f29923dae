"""A growing file and the hashes of its blocks: the same however it was written, cut back and gone on with."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from bertcli.corpus.blocks import BLOCK_BYTES, HASH_BYTES, HashedFile, block_hash, num_blocks

DATA = np.random.default_rng(0).integers(256, size=3 * BLOCK_BYTES + 1000, dtype=np.uint8).tobytes()
PLACES = st.sampled_from([0, 1, 7, BLOCK_BYTES - 1, BLOCK_BYTES, BLOCK_BYTES + 1, 3 * BLOCK_BYTES, len(DATA)])


@settings(max_examples=25)
@given(writes=st.lists(PLACES, max_size=5), saved=PLACES, written=PLACES)
def test_hashes_are_those_of_the_bytes(
    tmp_path_factory: object, writes: list[int], saved: int, written: int
) -> None:
    folder = tmp_path_factory.mktemp("hashed")  # pyright: ignore[reportAttributeAccessIssue]
    path = Path(folder) / "ids.bin"
    killed = HashedFile(path, 0)
    killed.append(DATA[:saved])
    killed.sync()
    killed.append(DATA[saved : max(saved, written)])  # after the last save: it is written again
    killed.close()
    file, at = HashedFile(path, saved), saved
    for end in [*sorted(end for end in writes if end > saved), len(DATA)]:
        file.append(DATA[at:end])
        at = end
    file.sync()
    file.sync()
    file.close()
    assert path.read_bytes() == DATA
    blocks = [DATA[i : i + BLOCK_BYTES] for i in range(0, len(DATA), BLOCK_BYTES)]
    assert (Path(folder) / "ids.hashes").read_bytes() == b"".join(map(block_hash, blocks))
    assert num_blocks(len(DATA)) == len(blocks)


def test_a_file_cut_back_has_the_hashes_of_what_is_left(tmp_path: Path) -> None:
    file = HashedFile(tmp_path / "ids.bin", 0)
    file.append(DATA)
    file.sync()
    file.close()
    file = HashedFile(tmp_path / "ids.bin", BLOCK_BYTES + 5)
    file.sync()
    file.close()
    assert (tmp_path / "ids.bin").read_bytes() == DATA[: BLOCK_BYTES + 5]
    hashes = (tmp_path / "ids.hashes").read_bytes()
    assert [hashes[:HASH_BYTES], hashes[HASH_BYTES:]] == [
        block_hash(DATA[:BLOCK_BYTES]),
        block_hash(DATA[BLOCK_BYTES : BLOCK_BYTES + 5]),
    ]
