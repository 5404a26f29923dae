"""How fast `bertcli prepare` is beside bare `tokenizers`, and how much memory it takes, on this machine.

    python scripts/bench/prepare.py FILES... --vocab VOCAB [--copies 10] [--rounds 3]

Both tokenize the same sentences with the same vocabulary, in turn; `prepare` also reads, decompresses, splits
into sentences, counts and writes the store, start-up included. Memory is the peak of the resident sizes of
the whole process tree, sampled twenty times a second; `--copies` measures it again on the same files copied
so many times. Linux only (/proc).
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

import tokenizers

from bertcli.config.corpus import CorpusConfig
from bertcli.corpus.documents import read_paragraphs, split_sentences
from bertcli.corpus.files import list_files
from bertcli.tokenizer.tokenizer import Tokenizer

BATCH = 1000
"""Sentences in a call of the bare library, its threads as it sets them itself."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("files", nargs="+")
    parser.add_argument("--vocab", required=True, type=Path)
    parser.add_argument("--copies", type=int, default=10)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    paths = [path for file in list_files(options.files) if isinstance(path := file.path, Path)]
    sentences, num_bytes = read_sentences(paths)
    with tempfile.TemporaryDirectory() as folder:
        backend = load_backend(options.vocab, Path(folder))
        bare, ours = [], []
        for number in range(options.rounds):
            bare.append(time_bare(backend, sentences))
            ours.append(time_prepare(paths, options.vocab, Path(folder)))
            print(f"round {number + 1}: {compare(bare[-1], ours[-1], num_bytes)}", flush=True)
        middle = [Measured(*map(statistics.median, zip(*measured, strict=True))) for measured in (bare, ours)]
        print(f"median, {num_bytes / 1e6:.1f} MB, {len(os.sched_getaffinity(0))} cores: ", end="")
        print(compare(middle[0], middle[1], num_bytes))
        if options.copies > 1:
            copies = [
                copy_file(path, Path(folder), number) for number in range(options.copies) for path in paths
            ]
            many = time_prepare(copies, options.vocab, Path(folder))
            print(
                f"{options.copies} copies: {num_bytes * options.copies / 1e6 / many.seconds:.2f} MB/s, "
                f"peak {many.peak / 1e6:.0f} MB ({many.peak / max(one.peak for one in ours) - 1:+.1%})"
            )


class Measured(NamedTuple):
    seconds: float
    """On the clock."""
    processor_seconds: float
    """Of all cores together: what other work on the machine does not change."""
    peak: float
    """Bytes of memory; 0 where it was not measured."""


def compare(bare: Measured, ours: Measured, num_bytes: int) -> str:
    """A line with both speeds and their ratio."""
    speeds = [num_bytes / 1e6 / measured.seconds for measured in (bare, ours)]
    return (
        f"bare {speeds[0]:.2f} MB/s, prepare {speeds[1]:.2f} MB/s, ratio {speeds[1] / speeds[0]:.3f} "
        f"(by processor time {bare.processor_seconds / ours.processor_seconds:.3f}), "
        f"peak {ours.peak / 1e6:.0f} MB"
    )


def read_sentences(paths: list[Path]) -> tuple[list[str], int]:
    """All sentences of the files, and their text's size in bytes."""
    corpus = CorpusConfig(files=[str(path) for path in paths])
    sentences: list[str] = []
    num_bytes = 0
    for path in paths:
        for paragraph in read_paragraphs(path, corpus):
            if paragraph is not None:
                num_bytes += len(paragraph.encode())
                sentences += split_sentences(paragraph, corpus.language)
    return sentences, num_bytes


def load_backend(vocab: Path, folder: Path) -> tokenizers.Tokenizer:
    """The library's own tokenizer of a vocabulary."""
    Tokenizer.load(vocab).save(folder / "bare")
    return tokenizers.Tokenizer.from_file(str(folder / "bare" / "tokenizer.json"))


def time_bare(backend: tokenizers.Tokenizer, sentences: list[str]) -> Measured:
    """Tokenize the sentences, the ids left where they are."""
    start, used = time.perf_counter(), time.process_time()
    for first in range(0, len(sentences), BATCH):
        backend.encode_batch_fast(sentences[first : first + BATCH], add_special_tokens=False)
    return Measured(time.perf_counter() - start, time.process_time() - used, 0)


def time_prepare(paths: list[Path], vocab: Path, folder: Path) -> Measured:
    """A whole `bertcli prepare`, start-up included."""
    config = folder / "config.yaml"
    run = folder / "run"
    shutil.rmtree(run, ignore_errors=True)
    files = [str(path.resolve()) for path in paths]
    config.write_text(
        json.dumps({"output_dir": str(run), "corpus": {"files": files}, "tokenizer": {"path": str(vocab)}})
    )
    start, used = time.perf_counter(), resource.getrusage(resource.RUSAGE_CHILDREN)
    command = [sys.executable, "-m", "bertcli", "prepare", str(config), "--json"]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL) as process:
        peak = 0
        while process.poll() is None:
            peak = max(peak, tree_memory(process.pid))
            time.sleep(0.05)
    if process.returncode:
        sys.exit(f"bertcli prepare failed with exit code {process.returncode}")
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    processor = after.ru_utime - used.ru_utime + after.ru_stime - used.ru_stime
    return Measured(time.perf_counter() - start, processor, peak)


def tree_memory(pid: int) -> int:
    """Bytes resident of a process and its descendants; shared pages count in each."""
    try:
        pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
        children = [
            int(child)
            for thread in os.listdir(f"/proc/{pid}/task")
            for child in Path(f"/proc/{pid}/task/{thread}/children").read_text().split()
        ]
    except (FileNotFoundError, ProcessLookupError):  # it has just ended
        return 0
    return pages * os.sysconf("SC_PAGE_SIZE") + sum(map(tree_memory, children))


def copy_file(path: Path, folder: Path, number: int) -> Path:
    """A copy under a name of its own."""
    copy = folder / f"copy-{number}" / path.name
    copy.parent.mkdir(exist_ok=True)
    return Path(shutil.copy(path, copy))


if __name__ == "__main__":
    main()
