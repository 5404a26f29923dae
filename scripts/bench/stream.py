#!/usr/bin/env python3
"""Speed of the data path on one core: ready batches from a token store, and the order at any scale.

python scripts/bench/stream.py runs/quickstart/store --length 128
"""

from __future__ import annotations

import argparse
import os
import statistics
import time
import tracemalloc
from pathlib import Path

os.environ["OMP_NUM_THREADS"] = "1"  # one core; before numpy and torch look

import numpy as np
import torch

from bertcli.batches.order import make_key, permute
from bertcli.batches.share import BatchSizes
from bertcli.batches.stream import BatchStream
from bertcli.config.run import with_values
from bertcli.corpus.token_store import open_store
from bertcli.objectives.registry import MLM, MLM_NSP
from bertcli.training.heldout import as_in_bert


def tokens_per_second(stream: BatchStream, first: int, steps: int) -> float:
    """Real tokens a second of processor time: what another process takes of the core does not count."""
    started, tokens = time.process_time(), 0
    for step in range(first, first + steps):
        tokens += stream[step].num_tokens
    return tokens / (time.process_time() - started)


def permutation_figures(size: int) -> str:
    """Time of one call, of one index within a call, and the memory that a call leaves behind."""
    key, many, calls = make_key(0), np.arange(size - 4096, size), 300
    permute(many, size, key)
    tracemalloc.start()
    permute(many, size, key)
    kept = tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()
    started = time.process_time()
    for number in range(calls):
        permute(np.array([size - 1 - number]), size, key)
    one = (time.process_time() - started) / calls
    started = time.process_time()
    for _ in range(calls):
        permute(many, size, key)
    within = (time.process_time() - started) / calls / len(many)
    return (
        f"{one * 1e6:.0f} us a call, {within * 1e6:.2f} us an index in a call of 4,096, {kept:,} bytes kept"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description="Speed of the data path on one core.")
    parser.add_argument("store", type=Path)
    parser.add_argument("--length", type=int, default=128)
    parser.add_argument("--batch-size", type=int, default=64)
    arguments = parser.parse_args()

    torch.set_num_threads(1)
    store = open_store(arguments.store)
    for objective in (MLM_NSP, MLM):
        for masking in ("token", "word", "span"):
            config = with_values(as_in_bert(objective, arguments.length), {"masking": masking})
            stream = BatchStream(
                store.train, store.tokenizer, config, seed=0, sizes=BatchSizes(arguments.batch_size)
            )
            rates = [tokens_per_second(stream, 100 * run, 100) for run in range(7)]
            print(f"{objective.name}, {masking}: {statistics.median(rates):,.0f} tokens/s (median of 7)")
    for size in (10**6, 10**9, 10**12):
        print(f"permutation of {size:,}: {permutation_figures(size)}")


if __name__ == "__main__":
    main()
