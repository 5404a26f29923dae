"""`bertcli prepare` by each engine and under torchrun, beside the plain command: the bytes and the seconds.

    python scripts/bench/engines.py FILES --vocab VOCAB --out FOLDER [--rounds 3] [--ways plain local]
        [--tasks 8] [--workers 2]

FILES is a glob, in quotes. In each round every way builds a store of its own, start-up included. Prints the
seconds of each, then the medians, the median ratio to the plain command, and whether the bytes are the same.
The jobs of Slurm are run by tests/corpus/test_slurm.py. Exit code 1 if a store has other bytes.
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import sys
import time
from pathlib import Path

import yaml

sys.path.insert(0, str(Path(__file__).parents[2]))
from scripts.check.clean_copies import contents


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("files")
    parser.add_argument("--vocab", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--tasks", type=int, default=8)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--ways", nargs="+", default=["plain", "local", "ray", "torchrun"])
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    plain, placed = [sys.executable, "-m", "bertcli"], f"--tasks {options.tasks} --workers {options.workers}"
    ranks = ["-m", "torch.distributed.run", "--standalone", f"--nproc-per-node={options.workers}"]
    all_ways = {
        "plain": (plain, ""),
        "local": (plain, f"--engine local {placed}"),
        "ray": (plain, f"--engine ray {placed}"),
        "torchrun": ([sys.executable, *ranks, "-m", "bertcli"], ""),
    }
    ways = {name: all_ways[name] for name in options.ways}
    seconds: dict[str, list[float]] = {name: [] for name in ways}
    stores: dict[str, dict[str, bytes]] = {}
    for number in range(options.rounds):
        for name, (program, placing) in ways.items():
            store = options.out / f"{name}-{number}"
            config = options.out / f"{store.name}.yaml"
            config.write_text(yaml.safe_dump(config_of(options, store)))
            begun = time.perf_counter()
            command = [*program, "prepare", str(config), *placing.split()]
            subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
            seconds[name].append(time.perf_counter() - begun)
            stores[name] = contents(store)
            print(f"round {number + 1}, {name}: {seconds[name][-1]:.1f} s", flush=True)
    print("\n| way | seconds | beside the plain command | bytes |\n|---|---|---|---|")
    for name, taken in seconds.items():
        ratio = statistics.median(one / first for one, first in zip(taken, seconds["plain"], strict=True))
        same = "the same" if stores[name] == stores["plain"] else "OTHERS"
        print(f"| {name} | {statistics.median(taken):.1f} | {ratio:.2f} | {same} |")
    sys.exit(any(store != stores["plain"] for store in stores.values()))


def config_of(options: argparse.Namespace, store: Path) -> dict[str, object]:
    return {
        "output_dir": str(options.out / "run"),
        "corpus": {"files": options.files, "store": str(store)},
        "tokenizer": {"path": str(options.vocab)},
    }


if __name__ == "__main__":
    main()
