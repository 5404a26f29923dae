"""What stands in a store's arrays is what was written, or a message."""

from __future__ import annotations

import random
from pathlib import Path

import numpy as np
import pytest

from bertcli.cli import main as cli
from bertcli.config.run import PretrainRecipe
from bertcli.corpus import finish as verify
from bertcli.corpus.build import prepare_store
from bertcli.corpus.finish import ARRAYS, check_arrays
from bertcli.corpus.token_store import HASHES, OpenStore, open_store
from bertcli.system.errors import UserError
from tests.corpus.builds import make_config, silent, write_corpus_folder
from tests.small_runs import write_config


@pytest.fixture(scope="module")
def config(tmp_path_factory: pytest.TempPathFactory) -> PretrainRecipe:
    config = make_config(write_corpus_folder(tmp_path_factory.mktemp("verify")))
    prepare_store(config, silent)
    return config


@pytest.fixture
def store(config: PretrainRecipe) -> OpenStore:
    return prepare_store(config, silent)


def flip(path: Path, place: int, bit: int) -> None:
    with open(path, "r+b") as file:
        file.seek(place)
        byte = file.read(1)[0]
        file.seek(place)
        file.write(bytes([byte ^ 1 << bit]))


def test_every_flipped_bit_of_the_arrays_is_recognized_where_a_run_starts(
    config: PretrainRecipe, store: OpenStore
):
    drawn = random.Random(0)
    sizes = store.manifest.arrays
    for _ in range(50):
        name = drawn.choices(ARRAYS, [sizes[name] for name in ARRAYS])[0]
        place, bit = drawn.randrange(sizes[name]), drawn.randrange(8)
        flip(store.folder / name, place, bit)
        with pytest.raises(UserError, match=rf"{name}: (damaged: .* not what was written|.* do not end at)"):
            prepare_store(config, silent)
        flip(store.folder / name, place, bit)
    prepare_store(config, silent)


def test_the_lowest_bit_of_every_id_is_recognized(config: PretrainRecipe, store: OpenStore):
    """Each id is still one of the vocabulary: nothing else would tell."""
    path = store.folder / "train" / "ids.bin"
    ids = np.fromfile(path, "<u2")
    (ids ^ 1).tofile(path)
    with pytest.raises(UserError, match=r"train/ids.bin: damaged: byte 0 to .* prepare CONFIG --overwrite"):
        prepare_store(config, silent)
    ids.tofile(path)


def test_arrays_and_hashes_of_another_store_are_recognized(config: PretrainRecipe, store: OpenStore):
    hashes = (store.folder / HASHES).read_bytes()
    (store.folder / HASHES).write_bytes(hashes[::-1])
    with pytest.raises(UserError, match=r"hashes.bin: damaged: it is not what was written"):
        prepare_store(config, silent)
    (store.folder / HASHES).write_bytes(hashes[:-1])
    with pytest.raises(UserError, match=r"hashes.bin: damaged: it has .* bytes"):
        open_store(store.folder)
    (store.folder / HASHES).write_bytes(hashes)


def test_of_a_large_store_some_blocks_are_read_by_seed_and_all_where_asked(
    store: OpenStore, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(verify, "FULL_BYTES", 0)
    monkeypatch.setattr(verify, "DRAWN_BLOCKS", 2)
    path = store.folder / "train" / "sentences.bin"
    flip(path, 9, 0)
    said: list[str] = []
    noticed = []
    for seed in range(30):
        try:
            check_arrays(store, seed, said.append)
        except UserError as error:
            noticed.append(str(error))
    assert 0 < len(noticed) < 30  # two blocks of eight
    assert all(f"{path}: damaged" in message for message in noticed)
    assert "comparing 2 of 8 blocks, drawn by the seed" in said[0]
    with pytest.raises(UserError, match=r"sentences.bin: damaged"):
        check_arrays(store, 0, said.append, every_block=True)
    flip(path, 9, 0)
    check_arrays(store, 0, said.append, every_block=True)
    assert said[-1] == "every block is what was written"


def test_a_block_that_the_disk_cannot_read_is_named(store: OpenStore, monkeypatch: pytest.MonkeyPatch):
    def refuse(data: bytes) -> bytes:
        raise OSError(5, "Input/output error")

    monkeypatch.setattr(verify, "block_hash", refuse)
    with pytest.raises(UserError, match=r"ids.bin: damaged: byte 0 to [\d,]+ \(input/output error\) is not"):
        check_arrays(store, 0, silent)


def test_a_damaged_store_is_said_by_prepare_verify_and_check_data(tmp_path: Path, capsys, monkeypatch):
    folder = write_corpus_folder(tmp_path)
    value = {
        "output_dir": str(folder / "run"),
        "corpus": {"files": [str(folder / "corpus")], "heldout_fraction": 0.2},
        "tokenizer": {"vocab_size": 500},
    }
    path = write_config(folder / "c.yaml", value)

    def bertcli(*arguments: object) -> tuple[int, str]:
        monkeypatch.setattr("sys.argv", ["bertcli", *map(str, arguments)])
        with pytest.raises(SystemExit) as end:
            cli.main()
        captured = capsys.readouterr()
        return int(end.value.code or 0), captured.out + captured.err

    assert bertcli("prepare", path, "--verify")[0] == 0
    ids = folder / "run" / "store" / "train" / "ids.bin"
    np.full(ids.stat().st_size // 2, 60_000, "<u2").tofile(ids)  # none of the vocabulary
    for command in (("prepare", path, "--verify"), ("show-batch", path), ("check-data", path)):
        code, said = bertcli(*command)
        assert (code, "train/ids.bin: damaged" in said) == (1 if "check-data" in command else 2, True)
