"""The config that `bertcli init` writes, and the lines that it prints, for both kinds of runs."""

import os
from collections.abc import Sequence
from dataclasses import dataclass

from bertcli.config.run import DecidedLoop
from bertcli.config.yaml_text import Block, Line, commented_yaml


@dataclass(frozen=True)
class Written:
    """A config to write.

    Attributes:
        predicted: a line on the time of the run.
        command: the command that reads it: pretrain or finetune.
        summary: lines on what was chosen.
    """

    lines: Sequence[Line | Block]
    predicted: str
    command: str
    summary: Sequence[str]

    @property
    def text(self) -> str:
        """The text of the YAML file."""
        keys = f"All keys: bertcli config {self.command}"
        head = f"{self.predicted}\nA comment says why; `or` in it names what else it may be. {keys}"
        return commented_yaml(self.lines, head)


def in_words(seconds: float) -> str:
    """The time as `40 seconds`, `4.7 minutes` or `3.1 hours`."""
    if seconds < 90:
        return f"{seconds:.0f} seconds" if seconds >= 10 else f"{seconds:.1f} seconds"
    return f"{seconds / 60:.1f} minutes" if seconds < 5400 else f"{seconds / 3600:.1f} hours"


def predicted(seconds: float, training: DecidedLoop) -> str:
    """The line on the time of a run, and on the device where its steps were measured."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    count = f" with {cores} core{'s' * (cores > 1)}" if training.device == "cpu" else ""
    machine = f"{training.device}{count} in {training.precision}"
    return f"Predicted: {in_words(seconds)}, as measured on this machine ({machine})."
