#!/usr/bin/env python3
"""How long a pretraining run takes to save and be gone when it is told to stop (SIGTERM).

    python scripts/bench/stop.py [--preset base] [--batch-size 4] [--rounds 3]

Each round pretrains on the bundled classics in a process of its own and sends SIGTERM a few steps in. Prints
the seconds from the signal, and from the end of the step that was under way (the last row of metrics.jsonl),
to the end of the process.
"""

from __future__ import annotations

import argparse
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

STEPS_BEFORE = 5


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--preset", default="base")
    parser.add_argument("--batch-size", type=int, default=4)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    changes = {
        "corpus": "{files: [classics]}",
        "tokenizer": "{vocab_size: 8192}",
        "model": f"{{preset: {options.preset}}}",
        "training": f"{{steps: 1000, batch_size: {options.batch_size}}}",
        "logging": "{every_steps: 1}",
    }
    waits = []
    with tempfile.TemporaryDirectory() as folder:
        config = Path(folder) / "config.yaml"
        lines = [f"{key}: {value}" for key, value in changes.items()]
        config.write_text("\n".join([f"output_dir: {folder}/run", *lines, ""]))
        for _ in range(options.rounds):
            since_signal, since_step = stop(config, Path(folder) / "run" / "metrics.jsonl")
            print(
                f"gone {since_signal:.1f} s after the signal, {since_step:.1f} s after the step", flush=True
            )
            waits.append(since_step)
    print(f"{options.preset}: {statistics.median(waits):.1f} s after the step in the median of {len(waits)}")


def stop(config: Path, metrics: Path) -> tuple[float, float]:
    """Seconds."""
    metrics.unlink(missing_ok=True)
    command = [sys.executable, "-m", "bertcli", "pretrain", str(config), "--overwrite"]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        while not metrics.exists() or metrics.read_text().count("\n") < STEPS_BEFORE:
            if process.poll() is not None:
                sys.exit(f"{' '.join(command)} ended with exit code {process.returncode}")
            time.sleep(0.02)
        sent = time.time()
        process.send_signal(signal.SIGTERM)
        process.wait()
    if process.returncode != 128 + signal.SIGTERM:
        sys.exit(f"{' '.join(command)} ended with exit code {process.returncode}")
    return time.time() - sent, time.time() - metrics.stat().st_mtime


if __name__ == "__main__":
    main()
