"""What `bertcli init` writes and says, for both kinds of configs."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass

from bertcli.config.load import parse_yaml
from bertcli.config.yaml_text import Block, Line, commented_yaml


@dataclass(frozen=True)
class Written:
    """A config.

    Attributes:
        command: that reads it: pretrain or finetune.
        summary: what was chosen, in words.
    """

    lines: Sequence[Line | Block]
    head: str
    command: str
    summary: Sequence[str]

    @property
    def text(self) -> str:
        """The YAML."""
        return commented_yaml(self.lines, self.head)

    @property
    def value(self) -> dict[str, object]:
        """What the YAML says."""
        return parse_yaml(self.text, "the config")


def in_words(seconds: float) -> str:
    """A time: `40 seconds`, `4.7 minutes`, `3.1 hours`."""
    if seconds < 90:
        return f"{seconds:.0f} seconds" if seconds >= 10 else f"{seconds:.1f} seconds"
    return f"{seconds / 60:.1f} minutes" if seconds < 5400 else f"{seconds / 3600:.1f} hours"


def machine(device: str, precision: str) -> str:
    """The device on which was measured: `cpu with 2 cores in bf16`."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    count = f" with {cores} core{'s' * (cores > 1)}" if device == "cpu" else ""
    return f"{device}{count} in {precision}"
