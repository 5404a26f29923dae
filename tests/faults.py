"""What happens to a run in the midst of it."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from typing import Any

import pytest

from bertcli.training.metrics_log import MetricsLog


def at_row(patch: pytest.MonkeyPatch, step: int, do: Callable[[], object], split: str = "train") -> None:
    """Let something happen just after the run wrote a row."""
    write = MetricsLog.write

    def write_and_do(self: MetricsLog, row: dict[str, Any]) -> None:
        write(self, row)
        if (row["step"], row["split"]) == (step, split):
            do()

    patch.setattr(MetricsLog, "write", write_and_do)


def terminate() -> None:
    os.kill(os.getpid(), signal.SIGTERM)
