"""SIGKILL at random moments of a small run, from the store's first byte to the model's last, then a resume.

    python scripts/check/kills.py [--kills 50] [--seed 0]

Each run begins in an empty folder, is killed once, resumed to its end, and compared with the undisturbed run:
every row of metrics.jsonl, the final weights, the optimizer's moments. Runs are forked from this process,
which has imported everything: Python's start would be most of the time. Exit code 1 where one differs.
"""

from __future__ import annotations

import argparse
import gzip
import io
import multiprocessing
import os
import random
import sys
import tempfile
import time
from collections import Counter
from contextlib import redirect_stderr
from pathlib import Path

os.environ["OMP_NUM_THREADS"] = "1"  # before torch looks: a fork has none of its parent's threads

from bertcli.cli.main import main as bertcli
from bertcli.config.load import check_config, save_config
from bertcli.config.schema import PretrainConfig
from bertcli.samples import SAMPLES
from bertcli.training.kills import WatchedRun, differences, draw_moments
from bertcli.training.pretraining import pretrain

STEPS, EVALUATE_EVERY, SAVE_EVERY = 24, 6, 4


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--kills", type=int, default=50)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    os.environ["TOKENIZERS_PARALLELISM"] = "false"  # its threads would not survive a fork
    drawn = random.Random(options.seed)
    began, kills, bad = time.monotonic(), [], 0
    with tempfile.TemporaryDirectory() as scratch:
        corpus = write_corpus(Path(scratch) / "corpus.txt")
        with redirect_stderr(io.StringIO()):  # all that a run imports late is imported here
            pretrain(config_of(Path(scratch) / "warm-up", corpus), resume=False, overwrite=False)
        undisturbed = run_in(Path(scratch) / "undisturbed", corpus)
        times = undisturbed.complete()
        print(f"undisturbed: {STEPS} steps in {times[-1]:.2f} s, the first row after {times[1]:.2f} s")
        while len(kills) < options.kills:
            run = run_in(Path(scratch) / f"run-{len(kills) + 1}", corpus)
            (moment,) = draw_moments(times, 1, by_time=True, drawn=drawn)
            kill = run.kill(moment)
            if kill is None:  # it ended before the kill came
                continue
            run.complete()
            kills.append(kill)
            found = differences(undisturbed.folder, run.folder)
            bad += bool(found)
            print(f"{len(kills):>3}  {kill!s:<52} {'; '.join(found) or 'equal'}", flush=True)
    print()
    for where, number in Counter(kill.where for kill in kills).most_common():
        print(f"{number:>3}  {where}")
    print(
        f"{len(kills) - bad} of {len(kills)} resumed to the undisturbed run's rows, weights and moments "
        f"(seed {options.seed}, {time.monotonic() - began:.0f} s)"
    )
    sys.exit(bad > 0)


def write_corpus(path: Path) -> Path:
    """Some chapters of the classics, enough for a store that is not built in a blink."""
    with gzip.open(SAMPLES["classics"], "rt", encoding="utf-8") as file:
        chapters = file.read().split("\n\n")
    path.write_text("\n\n".join(chapters[::15]) + "\n", encoding="utf-8")
    return path


def config_of(folder: Path, corpus: Path) -> PretrainConfig:
    """A pretraining run of a tiny model with dropout, its store in its own folder."""
    config = {
        "output_dir": str(folder),
        "corpus": {"files": [str(corpus)], "heldout_fraction": 0.2},
        "tokenizer": {"vocab_size": 1000},
        "data": {"max_length": 32, "workers": 0},
        "model": {"layers": 2, "hidden": 32, "heads": 2, "max_positions": 32},
        "training": {
            "steps": STEPS,
            "batch_size": 16,
            "warmup_steps": 5,
            "learning_rate": 1.0e-3,
            "device": "cpu",
        },
        "evaluation": {"every_steps": EVALUATE_EVERY, "batches": 4},
        "checkpoint": {"every_steps": SAVE_EVERY, "keep_last": 2},
        "logging": {"every_steps": 1},
    }
    return check_config(PretrainConfig, config, "the run")


def run_in(folder: Path, corpus: Path) -> WatchedRun:
    path, log = folder.with_suffix(".yaml"), folder.with_suffix(".log")
    save_config(config_of(folder, corpus), path)
    return WatchedRun(folder, folder / "store", STEPS, EVALUATE_EVERY, lambda: ForkedRun(path, log), log)


class ForkedRun:
    """`bertcli pretrain CONFIG --resume` in a fork of this process."""

    def __init__(self, config: Path, log: Path):
        self._process = multiprocessing.get_context("fork").Process(target=_run, args=(config, log))
        self._process.start()

    def poll(self) -> int | None:
        return self._process.exitcode

    def kill(self) -> None:
        self._process.kill()

    def wait(self) -> int:
        self._process.join()
        assert self._process.exitcode is not None
        return self._process.exitcode


def _run(config: Path, log: Path) -> None:
    with open(log, "w") as file:
        for stream in (1, 2):
            os.dup2(file.fileno(), stream)
    sys.argv = ["bertcli", "pretrain", str(config), "--resume"]
    bertcli()


if __name__ == "__main__":
    main()
