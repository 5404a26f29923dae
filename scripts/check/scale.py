#!/usr/bin/env python3
"""A token store of 10^12 tokens, opened and read by the real code: does anything grow with the corpus?

    python scripts/check/scale.py FOLDER [--tokens 1000000000000] [--checkpoints]

Makes two stores in FOLDER: one of 10^6 tokens, all of it on the disk, and one of `--tokens`. The ids and
offsets of the latter are sparse files: their addresses are real, their disk is not. `open_store` opens both.
For batches the offsets of the large one, which zeros cannot stand for, are computed as they are read; its ids
come from the mapped file. Each store is measured in a process of its own, on one core. With --checkpoints it
also times the writing of a checkpoint of base and of large: files, their hashes, all of it on the disk.
"""

from __future__ import annotations

import argparse
import json
import mmap
import os
import shutil
import statistics
import subprocess
import sys
import time
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

os.environ["OMP_NUM_THREADS"] = "1"  # one core; before numpy and torch look

import numpy as np
import torch
from torch import Tensor

from bertcli.batches.order import make_key, permute
from bertcli.batches.share import BatchSizes, Share
from bertcli.batches.slots import draw_slots
from bertcli.batches.stream import BatchStream
from bertcli.config.run import DataRecipe, ModelRecipe
from bertcli.corpus.blocks import BLOCK_BYTES, block_hash, num_blocks
from bertcli.corpus.finish import check_arrays
from bertcli.corpus.manifest import Manifest, SideCounts, StoredSource, write_manifest
from bertcli.corpus.token_store import HASHES, OFFSET_DTYPE, TokenStore, array_sizes, ids_dtype, open_store
from bertcli.folders.config_file import new_architecture
from bertcli.folders.model_folder import save_model_folder
from bertcli.folders.run_layout import RunLayout
from bertcli.model.pretraining import PretrainingModel
from bertcli.objectives.registry import MLM, MLM_NSP, Objective
from bertcli.system.files import file_hash
from bertcli.tokenizer.tokenizer import Tokenizer
from bertcli.tokenizer.wordpiece import SPECIAL_TOKENS, Normalization, build
from bertcli.training.checkpoint import CheckpointWriter, RunState
from bertcli.training.heldout import as_in_bert

VOCAB_SIZE = 30_522
SENTENCE, DOCUMENT = 20, 40
"""Tokens in a sentence and sentences in a document."""
SMALL = 10**6
STEPS, BATCH_SIZE = 60, 256
RANKS, MICRO_BATCH_SIZE = 1024, 128
PAGE = 4096 // OFFSET_DTYPE.itemsize
"""Offsets in a page of memory."""


class EvenOffsets:
    """The offsets 0, step, 2 step, ...: an array of uint64 that takes no memory.

    Counts the pages that a mapped file of them would read: of values asked for, and of binary searches.
    """

    def __init__(self, length: int, step: int):
        self._length, self._step = length, step
        self.pages: list[np.ndarray] | None = None
        """Where those numbers go; None: they are not counted."""

    def __len__(self) -> int:
        return self._length

    def __getitem__(self, index: Any) -> Any:
        index = np.asarray(index)
        index = np.where(index < 0, index + self._length, index)
        if self.pages is not None:
            self.pages.append(np.unique(index // PAGE))
        return index.astype(np.uint64) * np.uint64(self._step)

    def searchsorted(self, value: np.ndarray, side: str, sorter: None) -> np.ndarray:
        """What `np.searchsorted` calls."""
        if self.pages is not None:
            self._search(value)
        offset = 0 if side == "left" else 1
        steps, rest = np.divmod(value.astype(np.int64), self._step)
        place = steps + np.where(rest > 0, 1, offset)
        return np.clip(place, 0, self._length)

    def _search(self, value: np.ndarray) -> None:
        assert self.pages is not None
        low, high = np.zeros(len(value), np.int64), np.full(len(value), self._length)
        for _ in range(self._length.bit_length()):
            middle = (low + high) // 2
            open_ = low < high
            self.pages.append(np.unique(middle[open_] // PAGE))
            is_left = middle.astype(np.uint64) * np.uint64(self._step) < value
            low, high = np.where(open_ & is_left, middle + 1, low), np.where(open_ & ~is_left, middle, high)

    def count_pages(self) -> int:
        """Different pages since the count was begun, and begin it anew."""
        pages = self.pages or []
        self.pages = []
        return len(np.unique(np.concatenate(pages))) if pages else 0


def data_config(objective: Objective) -> DataRecipe:
    return as_in_bert(objective, 128)


def make_store(folder: Path, tokens: int) -> None:
    """A store whose every sentence and document is of one length; sparse where it is not `SMALL`."""
    counts = SideCounts(
        documents=tokens // SENTENCE // DOCUMENT, sentences=tokens // SENTENCE, tokens=tokens, words=tokens
    )
    folder.mkdir(parents=True, exist_ok=True)
    letters = [f"{prefix}{number}" for number in range(VOCAB_SIZE) for prefix in ("", "##")]
    tokenizer = Tokenizer(
        build([*SPECIAL_TOKENS, *letters][:VOCAB_SIZE], Normalization()), "the made-up vocabulary"
    )
    tokenizer.save(folder / "tokenizer")
    arrays = {}
    for side, held in (("train", counts), ("heldout", SideCounts())):
        (folder / side).mkdir(exist_ok=True)
        for name, size in array_sizes(held, ids_dtype(VOCAB_SIZE)).items():
            arrays[f"{side}/{name}.bin"] = size
            with open(folder / side / f"{name}.bin", "wb") as file:
                file.truncate(size)
    ids = np.random.default_rng(0).integers(len(SPECIAL_TOKENS), VOCAB_SIZE, SMALL, dtype="<u2")
    with open(folder / "train" / "ids.bin", "r+b") as file:
        file.write(ids.tobytes())
    for name, offsets in even_offsets(counts).items():
        with open(folder / "train" / f"{name}.bin", "r+b") as file:
            if tokens <= SMALL:
                file.write(offsets[np.arange(len(offsets))].astype(OFFSET_DTYPE).tobytes())
            else:  # where it ends is all that opening reads of an array
                file.seek(-OFFSET_DTYPE.itemsize, os.SEEK_END)
                file.write(offsets[-1].astype(OFFSET_DTYPE).tobytes())
    source = StoredSource(
        name="text",
        files=(),
        pieces={"train": (), "heldout": ()},
        train=counts,
        heldout=SideCounts(),
        dropped_documents=0,
        dropped_sentences=0,
        unigram_entropy=7.0,
    )
    manifest = Manifest(
        vocab_size=VOCAB_SIZE,
        tokenizer_hash=tokenizer.hash,
        options={},
        sources=(source,),
        arrays=arrays,
        hashes=write_hashes(folder, arrays),
        unigram_entropy=7.0,
    )
    write_manifest(folder, manifest)


def write_hashes(folder: Path, arrays: Mapping[str, int]) -> str:
    """The hashes of arrays of which the first and the last blocks are read: between them nothing stands."""
    hole = block_hash(bytes(BLOCK_BYTES))
    written = -(-SMALL * OFFSET_DTYPE.itemsize // BLOCK_BYTES)
    with open(folder / HASHES, "wb") as whole:
        for name, size in arrays.items():
            blocks = num_blocks(size)
            with open(folder / name, "rb") as array:
                for block in sorted({*range(min(blocks, written)), *range(max(0, blocks - 1), blocks)}):
                    if block == blocks - 1 > written:
                        whole.write(hole * (blocks - 1 - written))
                    array.seek(block * BLOCK_BYTES)
                    whole.write(block_hash(array.read(BLOCK_BYTES)))
    return file_hash(folder / HASHES, "blake2b")


def even_offsets(counts: SideCounts) -> dict[str, EvenOffsets]:
    return {
        "sentences": EvenOffsets(counts.sentences + 1, SENTENCE),
        "documents": EvenOffsets(counts.documents + 1, DOCUMENT),
        "pairs": EvenOffsets(counts.documents + 1, DOCUMENT - 1),
    }


def measure(folder: Path) -> dict[str, Any]:
    """Of one store, in this process; times are of its processor, memory is what was asked of the system."""
    torch.set_num_threads(1)
    np.searchsorted(np.arange(2), 1)
    before, started = _memory(), time.perf_counter()
    store = open_store(folder)
    figures: dict[str, Any] = {"open_s": time.perf_counter() - started}
    started = time.perf_counter()
    check_arrays(store, seed=0, report=lambda line: None)
    figures["check_s"] = time.perf_counter() - started
    counts = store.manifest.train
    train = store.train
    if counts.tokens > SMALL:
        train = replace(train, **even_offsets(counts))
    for objective in (MLM_NSP, MLM):
        stream = BatchStream(train, store.tokenizer, data_config(objective), 0, BatchSizes(BATCH_SIZE))
        times = []
        for step in range(STEPS):
            begun = time.process_time()
            stream[step * 10**6]
            times.append(time.process_time() - begun)
        figures[f"ms_per_batch {objective.name}"] = 1000 * statistics.median(times)
    figures["memory_mb"] = (_memory() - before) / 1e6
    for name, advice in (("read ahead", mmap.MADV_NORMAL), ("as is", mmap.MADV_RANDOM)):
        figures[f"ms_per_batch ids {name}"] = _ids_ms(store.train.ids, advice)
    for rows in (1 << 13, 1 << 15, 1 << 17):
        stream = BatchStream(train, store.tokenizer, data_config(MLM_NSP), 0, BatchSizes(rows))
        begun = time.process_time()
        for step in range(3):
            stream.spans(draw_slots(0, step, np.array([step * rows]), rows=np.array([rows])), step)
        figures[f"us_per_row spans {rows}"] = (time.process_time() - begun) / 3 / rows * 1e6
        begun = time.process_time()
        stream.micro_batches(0, Share(MICRO_BATCH_SIZE, RANKS - 1, RANKS))
        figures[f"ms_per_step rank {rows}"] = (time.process_time() - begun) * 1000
    places = np.arange(4096)
    begun = time.process_time()
    for number in range(100):
        permute(places + number, counts.sentences, make_key(number))
    figures["us_per_place permutation"] = (time.process_time() - begun) / 100 / len(places) * 1e6
    figures["pages"] = _count_pages(counts, train, store.tokenizer)
    return figures


def _ids_ms(ids: np.ndarray, advice: int) -> float:
    """Milliseconds for the ids of a batch of rows from places not read before, with or without read-ahead."""
    assert isinstance(ids.base, mmap.mmap)
    ids.base.madvise(advice)
    times, rng = [], np.random.default_rng(time.time_ns())
    for _ in range(5):
        places = rng.integers(len(ids) - 128, size=(BATCH_SIZE, 1)) + np.arange(128)
        begun = time.process_time()
        ids.take(places, mode="clip")
        times.append(time.process_time() - begun)
    return 1000 * statistics.median(times)


def _count_pages(counts: SideCounts, train: TokenStore, tokenizer: Tokenizer) -> dict[str, float]:
    """Pages of each array of offsets that a row reads, those that rows of a batch share counted once."""
    offsets = even_offsets(counts)
    counted = replace(train, **offsets)  # pyright: ignore
    stream = BatchStream(counted, tokenizer, data_config(MLM_NSP), 0, BatchSizes(BATCH_SIZE))
    for array in offsets.values():
        array.pages = []
    stream[0]
    return {name: array.count_pages() / BATCH_SIZE for name, array in offsets.items()}


def checkpoint_figures(folder: Path, tokenizer: Tokenizer, preset: Literal["base", "large"]) -> str:
    """Parameters, bytes and seconds of one checkpoint, which is removed again."""
    model = PretrainingModel(new_architecture(ModelRecipe(preset=preset, dropout=0.1), VOCAB_SIZE))
    weights = {name: value.detach() for name, value in model.state_dict().items()}
    moments = {
        f"{name}/{moment}": torch.zeros_like(parameter)
        for name, parameter in model.named_parameters()
        for moment in ("exp_avg", "exp_avg_sq")
    }

    def save_model(path: Path, weights: Mapping[str, Tensor]) -> None:
        save_model_folder(path, model, tokenizer, weights=weights)

    optimizer = torch.optim.SGD(model.parameters())
    writer = CheckpointWriter(RunLayout(folder), model, optimizer, save_model, keep_last=1)
    begun = time.perf_counter()
    path = writer.write(RunState(1), weights, moments)
    seconds = time.perf_counter() - begun
    size = sum(file.stat().st_size for file in path.rglob("*") if file.is_file())
    shutil.rmtree(path)
    parameters = sum(parameter.numel() for parameter in model.parameters())
    return f"{preset}: {parameters:,} parameters, a checkpoint of {size / 1e9:.2f} GB in {seconds:.1f} s"


def _memory() -> int:
    """Bytes that this process holds of its own, at their highest, mapped files not counted."""
    with open("/proc/self/status") as file:
        status = dict(line.split(":", 1) for line in file)
    return int(status["RssAnon"].split()[0]) << 10


def main() -> None:
    parser = argparse.ArgumentParser(description="Whether anything in the data path grows with the corpus.")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--tokens", type=int, default=10**12)
    parser.add_argument("--checkpoints", action="store_true")
    parser.add_argument("--measure", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.measure:
        print(json.dumps(measure(arguments.folder)))
        return
    found = []
    for tokens in (SMALL, arguments.tokens):
        folder = arguments.folder / f"{tokens:.0e}"
        make_store(folder, tokens)
        files = [path for path in folder.rglob("*") if path.is_file()]
        size, on_disk = (
            sum(f(path.stat()) for path in files) for f in (lambda s: s.st_size, lambda s: s.st_blocks * 512)
        )
        print(f"{tokens:,} tokens: {size:,} bytes in {folder}, {on_disk:,} of them on the disk", flush=True)
        command = [sys.executable, __file__, str(folder), "--measure"]
        found.append(json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout))
    for name in found[0]:
        if name != "pages":
            print(f"{name:>26}: {found[0][name]:9.3f} {found[1][name]:9.3f}")
    for name in found[0]["pages"]:
        print(f"{'pages a row, ' + name:>26}: {found[0]['pages'][name]:9.3f} {found[1]['pages'][name]:9.3f}")
    if arguments.checkpoints:
        tokenizer = Tokenizer.load(arguments.folder / f"{SMALL:.0e}" / "tokenizer")
        for preset in ("base", "large"):
            print(checkpoint_figures(arguments.folder / "checkpoints", tokenizer, preset), flush=True)


if __name__ == "__main__":
    main()
