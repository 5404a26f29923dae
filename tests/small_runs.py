"""Small real runs: the classics cut short, a model of a few thousand weights, the real command line."""

from __future__ import annotations

import contextlib
import gzip
import io
import json
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest
import yaml

from bertcli.cli import main as cli
from bertcli.samples import SAMPLES
from tests.warm import Warm


def write_corpus(path: Path, documents: int = 40, paragraphs: int = 12) -> Path:
    """The first paragraphs of some chapters of the classics, a paragraph a line."""
    with gzip.open(SAMPLES["classics"], "rt", encoding="utf-8") as file:
        chapters = file.read().split("\n\n")
    step = len(chapters) // documents
    short = ["\n".join(chapter.split("\n")[:paragraphs]) for chapter in chapters[::step][:documents]]
    path.write_text("\n\n".join(short) + "\n", encoding="utf-8")
    return path


def small_config(text: Path, output_dir: Path, **sections: dict[str, Any]) -> dict[str, Any]:
    """A config of a run of seconds; `sections` override its keys."""
    config: dict[str, Any] = {
        "output_dir": str(output_dir),
        "seed": 7,
        "corpus": {"files": [str(text)], "heldout_fraction": 0.2, "store": str(text.parent / "store")},
        "tokenizer": {"vocab_size": 400, "kind": "wordpiece", "lowercase": True},
        "data": {
            "mask_split": [0.8, 0.1, 0.1],
            "objective": "mlm+nsp",
            "max_length": 32,
            "mask_rate": 0.15,
        },
        "model": {
            "layers": 2,
            "hidden": 32,
            "heads": 4,
            "feed_forward": 64,
            "max_positions": 32,
            "dropout": 0.1,
        },
        "training": {
            "steps": 12,
            "batch_size": 8,
            "micro_batch_size": 4,
            "optimizer": "muon",
            "learning_rate": 1.0e-3,
            "warmup_steps": 3,
            "device": "cpu",
            "precision": "fp32",
        },
        "evaluation": {"every_steps": 6, "batches": 2},
        "checkpoint": {"every_steps": 5, "keep_last": 2},
        "logging": {"every_steps": 1},
    }
    for name, values in sections.items():
        config[name] = config.get(name, {}) | values
    return config


def write_config(path: Path, config: dict[str, Any]) -> Path:
    path.write_text(yaml.safe_dump(config), encoding="utf-8")
    return path


def without_waiting(said: str) -> str:
    """What a process said, without the lines that say on a busy machine that it is still at work."""
    return re.sub(r"^.* \(\d+ s so far\)\n", "", said, flags=re.MULTILINE)


def run_cli(*arguments: object) -> subprocess.CompletedProcess[str]:
    """The console script in this process, which has torch imported already."""
    command = ["bertcli", *map(str, arguments)]
    with (
        io.TextIOWrapper(io.BytesIO(), encoding="utf-8", write_through=True) as out,
        io.TextIOWrapper(io.BytesIO(), encoding="utf-8", write_through=True) as err,
    ):
        with (
            patch.object(sys, "argv", command),
            patch("bertcli.system.terminal.SILENCE", 1e6),
            contextlib.redirect_stdout(out),
            contextlib.redirect_stderr(err),
            pytest.raises(SystemExit) as exit_,
        ):
            cli.main()
        written, said = (each.buffer.getvalue().decode() for each in (out, err))  # pyright: ignore
    return subprocess.CompletedProcess(command, exit_.value.code or 0, written, said)  # pyright: ignore


def run_process(*arguments: object, **options: Any) -> subprocess.CompletedProcess[str]:
    """The console script in a process of its own."""
    command = [sys.executable, "-m", "bertcli", *map(str, arguments)]
    pipes: dict[str, Any] = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    done = subprocess.run(command, text=True, timeout=300, check=False, **(pipes | options))
    done.stderr = done.stderr and without_waiting(done.stderr)
    return done


def run_warm(
    *arguments: object, input: str | None = None, **options: Any
) -> subprocess.CompletedProcess[str]:
    """As `run_process`, but with all modules imported already."""
    pipes: dict[str, Any] = dict.fromkeys(("stdout", "stderr"), subprocess.PIPE)
    if input is not None:
        pipes["stdin"] = subprocess.PIPE
    process = Warm(*arguments, **(pipes | options))
    out, err = process.communicate(input, timeout=300)
    return subprocess.CompletedProcess(process.args, process.returncode, out, err and without_waiting(err))


def start_and_signal(verb: str, config: Path, run: Path, step: int, number: signal.Signals) -> int:
    """Start or resume a run, send the signal once metrics.jsonl shows `step`, return the exit code."""
    nowhere = subprocess.DEVNULL
    return start_and(
        lambda process: process.send_signal(number), verb, config, run, step, stdout=nowhere, stderr=nowhere
    )


def start_and(
    act: Callable[[subprocess.Popen[str]], None],
    verb: str,
    config: Path,
    run: Path,
    step: int,
    **popen: Any,
) -> int:
    """As `start_and_signal`, with another thing to do."""
    process = Warm(verb, config, "--resume", **popen)
    deadline = time.monotonic() + 120
    while process.poll() is None and time.monotonic() < deadline:
        metrics = run / "metrics.jsonl"
        if metrics.exists() and f'"step": {step},' in metrics.read_text():
            act(process)
            break
        time.sleep(0.002)
    return process.wait(timeout=120)


def read_rows(path: Path, split: str | None = None) -> list[dict[str, Any]]:
    rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    return [row for row in rows if split in (None, row["split"])]


def losses(path: Path) -> list[tuple[int, str, float, float]]:
    """What must be equal to the bit between two runs of one config."""
    return [(row["step"], row["split"], row["loss"], row["mlm_accuracy"]) for row in read_rows(path)]
