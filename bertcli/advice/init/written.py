"""The config that `bertcli init` writes, and the lines that it prints, for both kinds of runs."""

import os
from collections.abc import Sequence
from dataclasses import dataclass

from bertcli.config.load import parse_yaml
from bertcli.config.yaml_text import Block, Line, commented_yaml


@dataclass(frozen=True)
class Written:
    """A config to write.

    Attributes:
        command: the command that reads it: pretrain or finetune.
        summary: lines on what was chosen.
    """

    lines: Sequence[Line | Block]
    head: str
    command: str
    summary: Sequence[str]

    @property
    def text(self) -> str:
        """The text of the YAML file."""
        return commented_yaml(self.lines, self.head)

    @property
    def value(self) -> dict[str, object]:
        """The values in the YAML file."""
        return parse_yaml(self.text, "the config")


def in_words(seconds: float) -> str:
    """The time as `40 seconds`, `4.7 minutes` or `3.1 hours`."""
    if seconds < 90:
        return f"{seconds:.0f} seconds" if seconds >= 10 else f"{seconds:.1f} seconds"
    return f"{seconds / 60:.1f} minutes" if seconds < 5400 else f"{seconds / 3600:.1f} hours"


def machine(device: str, precision: str) -> str:
    """The device of the measurements: `cpu with 2 cores in bf16`."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    count = f" with {cores} core{'s' * (cores > 1)}" if device == "cpu" else ""
    return f"{device}{count} in {precision}"
