#!/usr/bin/env python3
"""`bertcli estimate` beside the run that follows: peak memory and tokens a second of a pretraining config.

    python scripts/check/estimate.py CONFIG [--steps 60] [--rounds 3] [--set KEY=VALUE ...]

Builds the store; then, so many times, estimates and pretrains for so many steps in a folder of its own, each
as a process of its own. Prints both sides of each round, how far apart they are, and the median of that.
Tokens a second of the run: the median of metrics.jsonl past its first quarter. Needs a machine with nothing
else to do, and not Windows.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

BERTCLI = [sys.executable, "-m", "bertcli"]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("config", type=Path)
    parser.add_argument("--steps", type=int, default=60)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE")
    options = parser.parse_args()
    errors: dict[str, list[float]] = {"memory": [], "speed": []}
    with tempfile.TemporaryDirectory() as folder:
        run = Path(folder) / "run"
        every = max(1, options.steps // 2)
        changes = [
            *options.set,
            f"output_dir={run}",
            f"training.steps={options.steps}",
            "logging.every_steps=1",
            f"evaluation.every_steps={every}",
            f"checkpoint.every_steps={every}",
        ]
        arguments = [str(options.config), *(part for change in changes for part in ("--set", change))]
        subprocess.run([*BERTCLI, "prepare", *arguments], check=True, capture_output=True)
        for _ in range(options.rounds):
            answer = subprocess.run(
                [*BERTCLI, "estimate", *arguments, "--json"], check=True, stdout=subprocess.PIPE
            )
            estimate = json.loads(answer.stdout)
            peak = peak_memory([*BERTCLI, "pretrain", *arguments, "--overwrite"])
            speed = speed_of(run / "metrics.jsonl")
            errors["memory"].append(show("memory, MB", estimate["memory_mb"]["total"], peak / 1e6))
            errors["speed"].append(show("tokens/s", estimate["tokens_per_s"], speed))
    for what, each in errors.items():
        print(f"{what:<12}{statistics.median(each):+.1%} in the median of {options.rounds}")


def speed_of(metrics: Path) -> float:
    """Tokens a second."""
    rows = [json.loads(line) for line in metrics.read_text().splitlines()]
    speeds = [row["tokens_per_second"] for row in rows if row["split"] == "train"]
    return statistics.median(speeds[len(speeds) // 4 :])


def peak_memory(command: list[str]) -> int:
    """Run it; bytes resident at most."""
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        sys.exit(f"{' '.join(command)} failed with exit code {process.returncode}")
    return usage.ru_maxrss * (1 if sys.platform == "darwin" else 1024)


def show(what: str, estimated: float, found: float) -> float:
    """How far the estimate is from what was found, as a share of it."""
    error = estimated / found - 1
    print(f"{what:<12}{estimated:>10,.0f} estimated, {found:>10,.0f} found: {error:+.1%}", flush=True)
    return error


if __name__ == "__main__":
    main()
