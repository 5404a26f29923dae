"""Files as users have them, written for a test."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from bertcli.advice.bench.probe import Probe
from bertcli.advice.bench.timing import training_to_time
from bertcli.advice.init.files import Seen, find_files
from bertcli.advice.init.fit_pretraining import PretrainingFit
from bertcli.config.run import decided_loop

MESSAGES = [
    "Shall we meet at the station tonight?",
    "You have won a prize, call now!",
    "I will be late for dinner.",
    "Free entry in our weekly competition.",
]
NAMES = ["ham", "spam", "ham", "spam"]
DECIDED = decided_loop(
    training_to_time(batch_size=8, micro_batch_size=8, device="cpu", precision="fp32", compile=False), {}
)


def speed(seconds: float, tokens: float, first_seconds: float = 0.0) -> Probe:
    """A step of so many seconds, in place of one that is measured."""
    return Probe(DECIDED, seconds, first_seconds, tokens)


FIT = PretrainingFit(
    *("tiny", 64, 20),
    batch_size=8,
    seconds=1.0,
    tokens=2000.0,
    reads=1.0,
    is_enough=False,
    ends_early=False,
    speed=speed(0.1, 100),
)
"""A choice of `init`, in place of one that is measured."""


def write_csv(path: Path, rows: Iterable[Sequence[Any]], separator: str = ",") -> Path:
    with open(path, "w", newline="", encoding="utf-8") as file:
        csv.writer(file, delimiter=separator, lineterminator="\n").writerows(rows)
    return path


def write_jsonl(path: Path, rows: Iterable[Any]) -> Path:
    path.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows), encoding="utf-8")
    return path


def messages(number: int) -> list[tuple[str, str]]:
    """Labels and texts, each text another."""
    return [(NAMES[i % 4], f"{MESSAGES[i % 4]} {i}") for i in range(number)]


def seen(path: Path) -> Seen:
    """The beginning of a file, as `bertcli init` reads it."""
    return find_files([str(path)], path.with_name("nowhere.yaml")).seen[0]


def comments(path: Path) -> str:
    """The comments of a config, a line each."""
    return "\n".join(line.partition("#")[2] for line in path.read_text(encoding="utf-8").splitlines())
