"""A checkout of bertcli, called by its command line in a folder of its own."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

_ENVIRONMENT = {"OMP_NUM_THREADS": "1", "TOKENIZERS_PARALLELISM": "false", "HF_HUB_OFFLINE": "1"}


@dataclass(frozen=True)
class Tree:
    """A checkout `code`, whose runs write under `scratch`."""

    code: Path
    scratch: Path

    def __post_init__(self) -> None:
        self.scratch.mkdir(parents=True, exist_ok=True)

    def call(self, *arguments: str) -> str:
        """The standard output of `bertcli ARGUMENTS`. Raises `RuntimeError` with its messages if it fails."""
        with self._start(arguments) as process:
            output, messages = process.communicate()
        if process.returncode:
            raise RuntimeError(f"{self.code}: bertcli {' '.join(arguments)} failed\n{messages[-2000:]}")
        return output

    def run_with_a_stop(self, command: str, config: Path, run: Path, stop_step: int) -> None:
        """A run that is killed once it has logged `stop_step`, and then resumed to its end.

        Raises:
            RuntimeError: it ended before; then nothing was resumed.
        """
        metrics = self.scratch / run / "metrics.jsonl"
        with self._start((command, str(config))) as process:
            while process.poll() is None and _last_step(metrics) < stop_step:
                time.sleep(0.02)
            process.send_signal(signal.SIGKILL)
            _, messages = process.communicate()
        if process.returncode != -signal.SIGKILL:
            raise RuntimeError(f"{self.code}: {command} ended before step {stop_step}\n{messages[-2000:]}")
        self.call(command, str(config), "--resume")

    def _start(self, arguments: Sequence[str]) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [sys.executable, "-m", "bertcli", *arguments],
            cwd=self.scratch,
            env=os.environ | _ENVIRONMENT | {"PYTHONPATH": str(self.code)},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )


def _last_step(metrics: Path) -> int:
    lines = metrics.read_text().splitlines(keepends=True) if metrics.exists() else []
    whole = [line for line in lines if line.endswith("\n")]
    return json.loads(whole[-1])["step"] if whole else 0
