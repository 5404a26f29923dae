"""A test of a config on this machine: does a killed and resumed run give the same result?"""

import random
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from bertcli.config.finetune import FinetuneConfig
from bertcli.config.load import load_config, save_config
from bertcli.config.run import with_values
from bertcli.config.schema import PretrainConfig
from bertcli.config.section import Auto
from bertcli.corpus.manifest import MANIFEST
from bertcli.corpus.matching import store_folder
from bertcli.folders.locate import resolve_model
from bertcli.folders.run_layout import RunLayout
from bertcli.system.files import disk_errors
from bertcli.system.terminal import say
from bertcli.tasks.data import load_labeled_data
from bertcli.tokenizer.tokenizer import Tokenizer
from bertcli.training.kills import Kill, WatchedRun, differences, draw_moments, read_rows

Config = TypeVar("Config", PretrainConfig, FinetuneConfig)
EVALUATIONS, CHECKPOINTS = 6, 8
"""Numbers per run: enough for kills during them, between them and after them."""


@dataclass(frozen=True)
class Verification:
    """The comparison of an uninterrupted and a killed run."""

    steps: int
    rows: int
    """Number of compared lines of metrics.jsonl."""
    kills: list[Kill]
    differences: list[str]
    """The differences; empty: all numbers and weights of the two runs are equal to the bit."""
    repeats: bool
    """False if two uninterrupted runs differ as well."""
    folder: Path | None
    """The folder of the runs if they differ; else None."""


def verify_resume(
    config: PretrainConfig | FinetuneConfig, steps: int, kills: int, seed: int, parent: Path | None
) -> Verification:
    """Run `steps` steps of a config without interruption, and again with SIGKILLs at random moments (`seed`).

    Both run in a new folder in `parent` (None: the system's temporary folder), which is removed unless they
    differ. Because the run is shorter, its warm-up is shorter, and evaluations and checkpoints are more
    frequent. An existing token store is shared; else one is built in that folder.

    Raises:
        UserError: the config cannot run, or a killed run cannot be resumed.
    """
    drawn = random.Random(seed)
    with _new_folder(parent) as folder:
        config, steps = (
            _short_pretraining(config, steps, folder)
            if isinstance(config, PretrainConfig)
            else _short_finetuning(config, steps)
        )
        first = _watched(config, folder / "undisturbed", steps)
        say(f"{steps} steps without interruption, in {first.folder}")
        times = first.complete()
        say(f"took {times[-1]:.1f} s; now with {kills} kills")

        settled = load_config(type(config), RunLayout(folder / "undisturbed").config)
        struck: list[Kill] = []
        found: list[str] = []
        while len(struck) < kills and not found:
            shutil.rmtree(folder / "killed", ignore_errors=True)
            second = _watched(settled, folder / "killed", steps)
            for moment in draw_moments(times, kills - len(struck), by_time=False, drawn=drawn):
                kill = second.kill(moment)
                if kill is None:  # it was faster than the first run: the next run gets the other kills
                    break
                struck.append(kill)
                say(f"kill {len(struck)} of {kills}: {kill}")
            second.complete()
            found = differences(first.folder, second.folder)
        repeats = True
        if found:
            say("they differ; does a second uninterrupted run give the same?")
            third = _watched(settled, folder / "repeated", steps)
            third.complete()
            repeats = not differences(first.folder, third.folder)
        rows = len(read_rows(first.folder))
        if not found:
            shutil.rmtree(folder)
        return Verification(
            steps, rows, struck, differences=found, repeats=repeats, folder=folder if found else None
        )


@contextmanager
def _new_folder(parent: Path | None) -> Iterator[Path]:
    """A new folder that is removed after an error or a signal; here SIGTERM has the effect of Ctrl-C."""
    if parent is not None:
        with disk_errors(f"{parent} cannot be used", if_refused="name another --folder"):
            parent.mkdir(parents=True, exist_ok=True)
    before = signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(128 + number))
    folder = Path(tempfile.mkdtemp(prefix="verify-resume-", dir=parent))
    try:
        yield folder
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise
    finally:
        signal.signal(signal.SIGTERM, before)


def _short_pretraining(config: PretrainConfig, steps: int, folder: Path) -> tuple[PretrainConfig, int]:
    training = config.training
    steps = min(steps, training.steps or steps)
    store = store_folder(config)
    if not (store / MANIFEST).is_file():
        say(
            f"no token store in {store}: one is built for these runs alone (a permanent one: bertcli prepare)"
        )
        store = folder / "store"
    sections = {
        "corpus": {"store": str(store)},
        "training": {
            "steps": steps,
            "epochs": None,
            "warmup_steps": _at_most(steps // 4, training.warmup_steps),
        },
        "evaluation": {"batches": min(config.evaluation.batches, 2)},
    }
    return _updated(config, steps, sections), steps


def _at_most(limit: int, steps: int | Auto) -> int | Auto:
    """The number of steps, at most `limit`; `auto` stays: the run decides by its own number of steps."""
    return steps if steps == "auto" else min(limit, steps)


def _short_finetuning(config: FinetuneConfig, steps: int) -> tuple[FinetuneConfig, int]:
    if config.folds is not None:
        config = with_values(config, {"fold": config.fold or 1})
    tokenizer = Tokenizer.load(resolve_model(config.model))
    data = load_labeled_data(config, tokenizer, lambda line: None)
    order = data.order(config.training.batch_size, config.training_seed)
    steps = min(steps, max(1, round(config.training.epochs * order.steps_per_epoch)))
    config = with_values(config, {"seeds": config.seeds and config.seeds[:1]})
    return _updated(config, steps, {"training": {"epochs": steps / order.steps_per_epoch}}), steps


def _updated(config: Config, steps: int, sections: dict[str, dict[str, Any]]) -> Config:
    evaluation = sections.setdefault("evaluation", {})
    evaluation["every_steps"] = max(1, steps // EVALUATIONS)
    sections["checkpoint"] = {"every_steps": max(1, steps // CHECKPOINTS), "keep_last": 2}
    sections["logging"] = {"every_steps": 1, "trackers": []}
    return with_values(config, sections)


def _watched(config: PretrainConfig | FinetuneConfig, root: Path, steps: int) -> WatchedRun:
    """A run of the real command line with its output in `root`."""
    path, log = root.with_suffix(".yaml"), root.with_suffix(".log")
    save_config(with_values(config, {"output_dir": str(root)}), path)
    verb, folder = "pretrain", root
    if isinstance(config, FinetuneConfig):
        verb = "finetune"
        folder = RunLayout(root).part(next(iter(config.parts), ""))
    every = config.evaluation.every_steps
    assert every is not None
    return WatchedRun(
        folder, None, steps, evaluate_every=every, start=partial(_start, verb, path, log), log=log
    )


def _start(verb: str, config: Path, log: Path) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-P", "-m", "bertcli", verb, str(config), "--resume"]
    with open(log, "wb") as file:
        return subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=file, stderr=file)
