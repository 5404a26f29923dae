"""What `bertcli init` is asked for, the config that it writes, and the lines that it prints."""

import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from bertcli.config.run import DecidedLoop
from bertcli.config.yaml_text import Block, Line, commented_yaml
from bertcli.families.family import FamilyName

Purpose = Literal["pretrain", "finetune"]


@dataclass(frozen=True)
class Request:
    """What a user asks for.

    Attributes:
        minutes: time that the run may take.
        purpose: pretraining or fine-tuning; None: the content of the files decides.
        model: the model to start with; None: a new one, or for fine-tuning a published one.
        family: the family of a new model; None: the usual one.
        device: a GPU of another machine, for which the run is calculated; None: this machine is measured.
    """

    minutes: float
    purpose: Purpose | None = None
    model: str | None = None
    family: FamilyName | None = None
    device: str | None = None


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


def predicted(seconds: float, training: DecidedLoop, device: str | None = None) -> str:
    """The line on the time of a run, and on the device where its steps were measured.

    `device`: the other machine for which they were calculated instead.
    """
    if device is not None:
        return (
            f"Predicted: {in_words(seconds)} on {device} in {training.precision}: calculated, not measured."
        )
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    count = f" with {cores} core{'s' * (cores > 1)}" if training.device == "cpu" else ""
    machine = f"{training.device}{count} in {training.precision}"
    return f"Predicted: {in_words(seconds)}, as measured on this machine ({machine})."
