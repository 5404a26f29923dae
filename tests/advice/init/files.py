"""Files as users have them, written for a test."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from bertcli.advice.init.files import Seen, find_files
from bertcli.advice.init.fit_pretraining import PretrainingFit, StepSpeed

MESSAGES = [
    "Shall we meet at the station tonight?",
    "You have won a prize, call now!",
    "I will be late for dinner.",
    "Free entry in our weekly competition.",
]
NAMES = ["ham", "spam", "ham", "spam"]
FIT = PretrainingFit(
    *("tiny", 64, 20),
    batch_size=8,
    seconds=1.0,
    reads=1.0,
    ends_early=False,
    speed=StepSpeed(0.1, 0.0, 100, device="cpu", precision="fp32"),
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
