"""How fast `bertcli predict` is beside the transformers text-classification pipeline, and its peak memory.

    python scripts/bench/predict.py MODEL TEXTS [--rounds 3] [--batch-size N] [--threads 1]
    python scripts/bench/predict.py MODEL TEXTS --memory [--rows 10000 100000 1000000]

MODEL is a folder fine-tuned for classification of single texts, TEXTS a file with a text a line. Both sides
answer the same texts in fp32 on the CPU, in turn, in one process, from strings to labels; the pipeline in
batches of 32, padded and truncated. Processor time is shown too: other work on the machine does not change it
much. `--memory` runs whole `bertcli predict` processes instead, on the texts repeated up to each number of
rows, and prints the largest resident size of each (take a small model). Needs the test extras; not for
Windows.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from itertools import cycle, islice
from pathlib import Path
from typing import NamedTuple

import torch

from bertcli.folders.task_folder import load_task_folder
from bertcli.inference.predict import Runner, default_batch_size, predict_stream
from bertcli.system.hardware import Precision
from bertcli.tasks.examples import TextExample
from bertcli.tasks.supervised import build_task

CPU = torch.device("cpu")
THEIR_BATCH = 32


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("model", type=Path)
    parser.add_argument("texts", type=Path)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--batch-size", type=int, default=default_batch_size(CPU))
    parser.add_argument("--threads", type=int, default=torch.get_num_threads())
    parser.add_argument("--memory", action="store_true")
    parser.add_argument("--rows", nargs="+", type=int, default=[10**4, 10**5, 10**6])
    options = parser.parse_args()
    texts = [line for line in options.texts.read_text(encoding="utf-8").split("\n") if line.strip()]
    if options.memory:
        for rows in options.rows:
            print(f"{rows:>9,} rows: peak {peak_memory(options.model, texts, rows) / 1e6:.0f} MB", flush=True)
    else:
        torch.set_num_threads(options.threads)
        ours, theirs = our_answers(options.model, options.batch_size), their_answers(options.model)
        compare(ours, theirs, texts, rounds=options.rounds)


class Measured(NamedTuple):
    seconds: float
    """On the clock."""
    processor_seconds: float


def compare(
    ours: Callable[[list[str]], list[str]],
    theirs: Callable[[list[str]], list[str]],
    texts: list[str],
    rounds: int,
    warm_up: int = THEIR_BATCH,
) -> None:
    """Time both sides in turn; print each round, the medians and on how many labels they agree.

    `warm_up`: the texts that both answer before.
    """
    for answer in (ours, theirs):
        answer(texts[:warm_up])
    measured: list[tuple[Measured, Measured]] = []
    for number in range(rounds):
        (labels, our_time), (their_labels, their_time) = timed(ours, texts), timed(theirs, texts)
        measured.append((our_time, their_time))
        equal = sum(a == b for a, b in zip(labels, their_labels, strict=True))
        print(
            f"round {number + 1}: {described(our_time, their_time)}; {equal:,} of {len(texts):,} labels equal"
        )
    middles = [
        Measured(*map(statistics.median, zip(*side, strict=True))) for side in zip(*measured, strict=True)
    ]
    print(f"median, {len(texts):,} texts, {torch.get_num_threads()} threads: {described(*middles)}")


def our_answers(
    model: Path, batch_size: int, precision: Precision = "fp32"
) -> Callable[[list[str]], list[str]]:
    loaded = load_task_folder(model)
    task = build_task(loaded.settings, loaded.labels)
    runner = Runner(loaded.model.eval(), task, loaded.tokenizer, CPU, precision, batch_size)

    def answer(texts: list[str]) -> list[str]:
        examples = (TextExample("", {"text": text}, (text,), None) for text in texts)
        return [each.prediction.as_json()["label"] for each in predict_stream(runner, examples)]

    return answer


def their_answers(model: Path) -> Callable[[list[str]], list[str]]:
    from transformers import pipeline

    max_length = load_task_folder(model).settings.max_length
    classify = pipeline("text-classification", model=str(model), device="cpu")

    def answer(texts: list[str]) -> list[str]:
        options = {"padding": True, "truncation": True, "max_length": max_length}
        return [each["label"] for each in classify(texts, batch_size=THEIR_BATCH, **options)]

    return answer


def timed(answer: Callable[[list[str]], list[str]], texts: list[str]) -> tuple[list[str], Measured]:
    started, used = time.perf_counter(), time.process_time()
    labels = answer(texts)
    return labels, Measured(time.perf_counter() - started, time.process_time() - used)


def described(ours: Measured, theirs: Measured) -> str:
    return (
        f"bertcli {ours.seconds:.1f} s, pipeline {theirs.seconds:.1f} s, {theirs.seconds / ours.seconds:.2f} "
        f"times as fast (by processor time {theirs.processor_seconds / ours.processor_seconds:.2f})"
    )


def peak_memory(model: Path, texts: list[str], rows: int) -> int:
    """Bytes resident at most in a whole `bertcli predict` on so many rows."""
    with tempfile.TemporaryDirectory() as folder:
        source, target = Path(folder) / "texts.txt", Path(folder) / "answers.jsonl"
        with open(source, "w", encoding="utf-8") as file:
            file.writelines(f"{text}\n" for text in islice(cycle(texts), rows))
        command = [sys.executable, "-m", "bertcli", "predict", str(model), "--input", str(source)]
        process = subprocess.Popen([*command, "--output", str(target), "--device", "cpu"])
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode:
            sys.exit(f"bertcli predict failed with exit code {process.returncode}")
        with open(target, "rb") as file:
            assert sum(1 for _ in file) == rows
    return usage.ru_maxrss * (1 if sys.platform == "darwin" else 1024)


if __name__ == "__main__":
    main()
