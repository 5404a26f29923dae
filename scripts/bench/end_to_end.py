#!/usr/bin/env python3
"""`bertcli pretrain` beside `bertcli bench step`: what reading, pairing, masking and logging cost a run.

    python scripts/bench/end_to_end.py CONFIG [--steps 20] [--rounds 5] [--set KEY=VALUE ...]

Builds the store; then, so many times in turn, pretrains for so many steps in a folder of its own and takes as
many steps of no text with the same sizes, each as a process of its own. Real tokens a second of the median
step on both sides; the ratio is taken round by round.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

from bertcli.config.load import load_config
from bertcli.config.schema import PretrainConfig

BERTCLI = [sys.executable, "-m", "bertcli"]
WARMUP_STEPS = 3


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("config", type=Path)
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        run = Path(folder) / "run"
        changes = [
            *options.set,
            f"output_dir={run}",
            f"training.steps={options.steps + WARMUP_STEPS}",
            "logging.every_steps=1",
        ]
        arguments = [str(options.config), *(part for change in changes for part in ("--set", change))]
        run_quietly([*BERTCLI, "prepare", *arguments])
        ratios = []
        for number in range(options.rounds):
            run_quietly([*BERTCLI, "pretrain", *arguments, "--overwrite"])
            whole = speed_of(run / "metrics.jsonl")
            config = load_config(PretrainConfig, run / "config.yaml")
            vocabulary = (run / "model" / "vocab.txt").read_text(encoding="utf-8").count("\n")
            step = json.loads(run_quietly([*BERTCLI, *bench_arguments(config, vocabulary, options.steps)]))
            ratios.append(whole / step["tokens_per_s"])
            print(
                f"round {number + 1}: {whole:,.0f} tokens/s in a run, {step['tokens_per_s']:,.0f} in bench "
                f"step: {ratios[-1]:.1%}",
                flush=True,
            )
        print(f"median {statistics.median(ratios):.1%} ({min(ratios):.1%} to {max(ratios):.1%})")


def bench_arguments(config: PretrainConfig, vocabulary: int, steps: int) -> list[str]:
    """The same sizes, as the resolved config of the run has them."""
    training = config.training
    values = {
        "--preset": config.model.preset,
        "--vocab-size": vocabulary,
        "--batch-size": training.batch_size,
        "--micro-batch-size": training.micro_batch_size,
        "--length": config.data.max_length,
        "--dropout": config.model.dropout,
        "--precision": training.precision,
        "--device": training.device,
        "--steps": steps,
    }
    compiled = ["--compile"] * (training.compile is True)
    return ["bench", "step", "--json", *compiled, *(str(part) for pair in values.items() for part in pair)]


def speed_of(metrics: Path) -> float:
    """Real tokens a second of the median step."""
    rows = [json.loads(line) for line in metrics.read_text().splitlines()]
    speeds = [row["tokens_per_second"] for row in rows if row["split"] == "train"]
    return statistics.median(speeds[WARMUP_STEPS:])


def run_quietly(command: list[str]) -> str:
    """What it prints to standard output."""
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"{' '.join(command)} failed with exit code {done.returncode}:\n{done.stderr}")
    return done.stdout


if __name__ == "__main__":
    main()
