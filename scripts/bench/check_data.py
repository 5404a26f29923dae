"""How fast `bertcli check-data` reads a corpus, and how much memory it takes, on this machine.

    python scripts/bench/check_data.py FILES... [--copies 10] [--rounds 3]

Whole runs of the command, start-up included, without a vocabulary: nothing is tokenized. Memory is the peak
of the resident sizes of the whole process tree (`bench_prepare.py`); `--copies` measures it again on the same
files copied so many times. Linux only (/proc).
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

from prepare import copy_file, tree_memory

from bertcli.corpus.files import list_files


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("files", nargs="+")
    parser.add_argument("--copies", type=int, default=10)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    paths = [path for file in list_files(options.files) if isinstance(path := file.path, Path)]
    print(f"{len(os.sched_getaffinity(0))} cores")
    with tempfile.TemporaryDirectory() as folder:
        rounds = []
        for number in range(options.rounds):
            rounds.append(run_check(paths, Path(folder)))
            print(f"round {number + 1}: {describe(rounds[-1])}", flush=True)
        middle = Measured(*map(statistics.median, zip(*rounds, strict=True)))
        print(f"median: {describe(middle)}")
        if options.copies > 1:
            copies = [copy_file(path, Path(folder), n) for n in range(options.copies) for path in paths]
            print(f"{options.copies} copies: {describe(run_check(copies, Path(folder)))}")


class Measured(NamedTuple):
    megabytes: float
    """Of text, in UTF-8."""
    seconds: float
    """On the clock."""
    processor_seconds: float
    """Of all cores together: what other work on the machine does not change."""
    peak: float
    """Bytes of memory."""


def describe(measured: Measured) -> str:
    size = measured.megabytes
    return (
        f"{size:.1f} MB in {measured.seconds:.2f} s: {size / measured.seconds:.1f} MB/s, "
        f"{size / measured.processor_seconds:.1f} MB a second of one core; peak {measured.peak / 1e6:.0f} MB"
    )


def run_check(paths: list[Path], folder: Path) -> Measured:
    """One `bertcli check-data`, start-up included."""
    config = folder / "config.yaml"
    files = [str(path.resolve()) for path in paths]
    config.write_text(json.dumps({"output_dir": str(folder / "run"), "corpus": {"files": files}}))
    start, used = time.perf_counter(), resource.getrusage(resource.RUSAGE_CHILDREN)
    command = [sys.executable, "-m", "bertcli", "check-data", str(config), "--json"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as process:
        peak = 0
        while process.poll() is None:  # the one line that it writes fits into the pipe
            peak = max(peak, tree_memory(process.pid))
            time.sleep(0.02)
        seconds = time.perf_counter() - start
        output = process.communicate()[0]
    if process.returncode:
        sys.exit(f"bertcli check-data failed with exit code {process.returncode}: {output}")
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    processor = after.ru_utime - used.ru_utime + after.ru_stime - used.ru_stime
    return Measured(json.loads(output)["bytes"] / 1e6, seconds, processor, peak)


if __name__ == "__main__":
    main()
