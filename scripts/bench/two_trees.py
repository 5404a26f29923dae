"""The speed of two checkouts of bertcli, in turn on this machine.

    python scripts/bench/two_trees.py OLD NEW [--rounds 5] [--only step finetune]

A round runs each command with OLD, then with NEW, one thread each. Speeds are those of `bertcli bench`; for
the other commands the processor time of the process and its children counts. Prints the median of both for
each command, and the median ratio of a round: above 1, NEW is faster.
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
from pathlib import Path
from typing import Any

import yaml

FINETUNE = ["bench", "finetune", "spam.yaml", "--steps", "30", "--json"]
COMMANDS: dict[str, tuple[str, list[str]]] = {
    "step": ("tokens_per_s", ["bench", "step", "--preset", "mini", "--steps", "6", "--json"]),
    "finetune": ("rows_per_s", FINETUNE),
    "finetune-fp32": ("rows_per_s", [*FINETUNE, "--set", "training.precision=fp32"]),
    "predict": ("texts_per_s", ["bench", "predict", "model", "--texts", "500", "--json"]),
    "few-steps": ("", ["finetune", "spam.yaml", "--overwrite", "--set", "training.epochs=0.05"]),
    "prepare": ("", ["prepare", "corpus.yaml", "--overwrite"]),
    "check-data": ("", ["check-data", "corpus.yaml"]),
    "help": ("", ["--help"]),
}
"""Name -> the key of its speed (none: processor seconds count), and the arguments."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("old", type=Path)
    parser.add_argument("new", type=Path)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--only", choices=COMMANDS, nargs="+", default=list(COMMANDS))
    options = parser.parse_args()
    trees = [options.old.resolve(), options.new.resolve()]
    with tempfile.TemporaryDirectory() as scratch:
        folders = [make_inputs(tree, Path(scratch) / name) for tree, name in zip(trees, "ab", strict=True)]
        for name in options.only:
            speeds = [
                [speed(tree, folder, name) for tree, folder in zip(trees, folders, strict=True)]
                for _ in range(options.rounds)
            ]
            old, new = (statistics.median(side) for side in zip(*speeds, strict=True))
            ratio = statistics.median(after / before for before, after in speeds)
            print(f"{name:<12}{show(name, old):>16}{show(name, new):>16}   {ratio:.3f}", flush=True)


def make_inputs(tree: Path, folder: Path) -> Path:
    """A short pretraining run, whose model and store the other commands use."""
    folder.mkdir()
    corpus: dict[str, Any] = {
        "output_dir": "run",
        "corpus": {"files": ["classics"]},
        "model": {"preset": "mini"},
        "training": {"steps": 2},
    }
    task = {"type": "classification", "train": "sms-spam", "text": "message", "label": "label"}
    spam = {"output_dir": "spam", "model": "model", "task": task | {"dev_fraction": 0.1}}
    for name, value in (("corpus", corpus), ("spam", spam)):
        (folder / f"{name}.yaml").write_text(yaml.safe_dump(value))
    run(tree, folder, ["pretrain", "corpus.yaml"])
    shutil.copytree(folder / "run" / "model", folder / "pretrained")
    shutil.copytree(folder / "run" / "model", folder / "model")
    run(tree, folder, ["finetune", "spam.yaml", "--set", "training.epochs=0.05"])
    shutil.rmtree(folder / "model")
    shutil.copytree(folder / "spam" / "model", folder / "model")
    return folder


def speed(tree: Path, folder: Path, name: str) -> float:
    """Of one call; for processor seconds their inverse."""
    key, arguments = COMMANDS[name]
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    output = run(tree, folder, arguments)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    if key:
        return json.loads(output)[key]
    return 1 / (after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)


def show(name: str, value: float) -> str:
    key = COMMANDS[name][0]
    return f"{value:,.0f} {key.removesuffix('_per_s')}/s" if key else f"{1 / value:.2f} s"


def run(tree: Path, folder: Path, arguments: list[str]) -> str:
    environment = os.environ | {"PYTHONPATH": str(tree), "OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-m", "bertcli", *arguments]
    done = subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, check=False, timeout=1800
    )
    if done.returncode not in (0, 1):  # check-data says by 1 that a run would fail
        raise SystemExit(f"{' '.join(command)} in {tree}: {done.stderr}")
    return done.stdout


if __name__ == "__main__":
    main()
