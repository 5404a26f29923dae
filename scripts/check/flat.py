#!/usr/bin/env python3
"""A long run of a small model: does it take more memory, or more time for a token, as it goes on?

    python scripts/check/flat.py CONFIG [--steps 10000] [--set KEY=VALUE ...]

Pretrains in a process of its own, reads its resident memory once a second, and prints for each tenth of the
run the most that it held and the median of its tokens a second. Exit code 1 where the last tenth held more
than 5 % more than the second (the first is still taking what it needs). Linux only.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("config", type=Path)
    parser.add_argument("--steps", type=int, default=10_000)
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        metrics = Path(folder) / "run" / "metrics.jsonl"
        every = max(1, options.steps // 10)
        changes = [
            *options.set,
            f"output_dir={metrics.parent}",
            f"training.steps={options.steps}",
            f"logging.every_steps={max(1, every // 20)}",
            f"evaluation.every_steps={every}",
            f"checkpoint.every_steps={every}",
        ]
        command = [sys.executable, "-m", "bertcli", "pretrain", str(options.config)]
        for change in changes:
            command += ["--set", change]
        held = watch(command, metrics)
        rows = [row for row in read(metrics) if row["split"] == "train"]
    tenths = range(1, 11)
    memory = [
        max((mb for step, mb in held if tenth_of(step, every) == tenth), default=0.0) for tenth in tenths
    ]
    print(f"{'steps':>12}{'memory, MB':>12}{'tokens/s':>12}")
    for tenth in tenths:
        speeds = [row["tokens_per_second"] for row in rows if tenth_of(row["step"], every) == tenth]
        print(f"{tenth * every:>12,}{memory[tenth - 1]:>12,.0f}{statistics.median(speeds):>12,.0f}")
    growth = memory[-1] / memory[1] - 1
    print(f"memory of the last tenth against the second: {growth:+.1%}")
    sys.exit(growth > 0.05)


def watch(command: list[str], metrics: Path) -> list[tuple[int, float]]:
    """Run it; (steps logged, MB resident) once a second."""
    held = []
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        while process.poll() is None:
            rows = read(metrics)
            if rows:
                held.append((rows[-1]["step"], resident(process.pid) / 1e6))
            time.sleep(1.0)
    if process.returncode:
        sys.exit(f"{' '.join(command)} failed with exit code {process.returncode}")
    return held


def resident(pid: int) -> int:
    """Bytes; 0 once it has ended."""
    pages = Path(f"/proc/{pid}/statm").read_text().split()
    return int(pages[1]) * os.sysconf("SC_PAGE_SIZE")


def read(metrics: Path) -> list[dict]:
    lines = metrics.read_text().splitlines(keepends=True) if metrics.exists() else []
    return [json.loads(line) for line in lines if line.endswith("\n")]


def tenth_of(step: int, every: int) -> int:
    return min(10, (step - 1) // every + 1)


if __name__ == "__main__":
    main()
