"""What checkpoints cost a run: steps with one written in the background beside steps without.

    python scripts/bench/checkpoint.py FOLDER [--preset base] [--batch-size 4] [--length 128] [--every 50]

Each pair is so many steps without a checkpoint and as many with one begun before the first of them, in turn.
Prints the time of both and how long a checkpoint held up a step, beside the usual step. FOLDER is on the disk
to be measured.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Iterator, Mapping
from itertools import islice
from pathlib import Path

import torch
from torch import Tensor

from bertcli.advice.bench.timing import synthetic_steps
from bertcli.batches.share import Share
from bertcli.config.run import ModelRecipe
from bertcli.folders.config_file import new_architecture
from bertcli.folders.run_layout import RunLayout
from bertcli.folders.weights import write_safetensors
from bertcli.model.pretraining import PretrainingModel
from bertcli.objectives.masked_language import MaskedLanguage
from bertcli.objectives.registry import NEXT_SENTENCE
from bertcli.system.hardware import resolve_device, resolve_precision
from bertcli.training.checkpoint import CheckpointWriter, RunState
from bertcli.training.loop import LoopSettings, train
from bertcli.training.optimizer import build_optimizer
from bertcli.training.scores import StepReport

VOCAB_SIZE = 30_522


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--preset", default="base")
    parser.add_argument("--batch-size", type=int, default=4)
    parser.add_argument("--length", type=int, default=128)
    parser.add_argument("--every", type=int, default=50, help="steps")
    parser.add_argument("--pairs", type=int, default=2)
    options = parser.parse_args()
    device = resolve_device("auto")
    model = PretrainingModel(
        new_architecture(ModelRecipe(preset=options.preset, dropout=0.1), VOCAB_SIZE)
    ).to(device)
    optimizer = build_optimizer(model, (0.9, 0.999), 0.01)
    settings = LoopSettings(0, device, resolve_precision("auto", device), 1.0, lambda step: 1e-4)
    steps = synthetic_steps(VOCAB_SIZE, options.batch_size, options.length, Share(options.batch_size))
    reports = train(model, MaskedLanguage(NEXT_SENTENCE), steps, optimizer, settings, 0)
    writer = CheckpointWriter(RunLayout(options.folder), model, optimizer, save_weights, keep_last=1)

    list(islice(reports, 3))
    writer.save(RunState(step=0))  # takes the memory that all later copies use
    writer.finish()
    started = time.perf_counter()
    writer.save(RunState(step=0))  # what a signal to stop waits for
    writer.finish()
    alone = time.perf_counter() - started
    plain, saving, held = [], [], []
    for number in range(1, options.pairs + 1):
        plain += (without := seconds_of(islice(reports, options.every)))
        started = time.perf_counter()
        writer.save(RunState(step=number))
        held.append(time.perf_counter() - started)
        saving += (with_one := seconds_of(islice(reports, options.every)))
        writer.finish()
        total = held[-1] + sum(with_one)
        print(
            f"{options.every} steps without: {sum(without):.1f} s, with a checkpoint: {total:.1f} s "
            f"({total / sum(without) - 1:+.1%}); held up for {held[-1]:.2f} s",
            flush=True,
        )
    size = sum(path.stat().st_size for path in options.folder.rglob("*") if path.is_file())
    usual = statistics.median(plain)
    print(
        f"{options.preset}, {size / 1e6:,.0f} MB a checkpoint, {alone:.1f} s by itself; "
        f"usual step {usual:.2f} s; a step was held up for at most "
        f"{max(held):.2f} s, and took at most {max(saving):.2f} s beside a checkpoint "
        f"({max(plain):.2f} s without); in all {(sum(held) + sum(saving)) / sum(plain) - 1:+.1%}"
    )


def save_weights(path: Path, weights: Mapping[str, Tensor]) -> None:
    path.mkdir()
    write_safetensors(path / "model.safetensors", dict(weights))


def seconds_of(reports: Iterator[StepReport]) -> list[float]:
    seconds, started = [], time.perf_counter()
    for _ in reports:
        if torch.cuda.is_available():
            torch.cuda.synchronize()
        now = time.perf_counter()
        seconds.append(now - started)
        started = now
    return seconds


if __name__ == "__main__":
    main()
