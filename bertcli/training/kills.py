"""Runs in another process, killed at random moments and resumed, and a comparison of their results."""

import random
import signal
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import pairwise, zip_longest
from pathlib import Path
from typing import Any, Protocol

from bertcli.folders.run_layout import RunLayout, step_name
from bertcli.system.errors import UserError
from bertcli.system.files import file_hash
from bertcli.training.metrics_log import read_metrics

POLL_SECONDS = 0.002
TIMES = ("seconds", "tokens_per_second")
"""The keys of a row that differ between any two runs."""


class Process(Protocol):
    """A started run, such as `subprocess.Popen`."""

    def poll(self) -> int | None: ...
    def kill(self) -> None: ...
    def wait(self) -> int: ...


@dataclass(frozen=True, order=True)
class Moment:
    """The time `seconds` after the run wrote line `row` of metrics.jsonl, or took its folder (row 0)."""

    row: int
    seconds: float


@dataclass(frozen=True)
class Kill:
    """A kill that happened: the planned moment, and the progress of the run."""

    moment: Moment
    step: int
    """The last step in metrics.jsonl."""
    where: str

    def __str__(self) -> str:
        moment = f"row {self.moment.row} + {self.moment.seconds:.3f} s"
        return f"{moment:<19} step {self.step:<4} {self.where}"


@dataclass(frozen=True)
class WatchedRun:
    """A run in its own folder, which `start` starts or resumes."""

    folder: Path
    store: Path | None
    """The token store that the run builds; None: it builds none."""
    steps: int
    evaluate_every: int
    start: Callable[[], Process]
    log: Path
    """The file with the messages of the run."""

    def complete(self) -> list[float]:
        """Start or resume the run and wait for its end.

        Returns the seconds at which row 0, 1, ... was written, then those at the end. Raises `UserError` if
        the run fails.
        """
        began, watch, times = time.monotonic(), _Watch(self.folder), []
        with self._running() as process:
            while process.poll() is None:
                times += [time.monotonic() - began] * (watch.rows() + 1 - len(times))
                time.sleep(POLL_SECONDS)
        self._check(process.wait())
        return [*times, time.monotonic() - began]

    def kill(self, moment: Moment) -> Kill | None:
        """Start or resume the run, and send SIGKILL at `moment`; None: the run ended before.

        Raises `UserError` if the run fails.
        """
        watch = _Watch(self.folder)
        with self._running() as process:
            while process.poll() is None and watch.rows() < moment.row:
                time.sleep(POLL_SECONDS)
            time.sleep(moment.seconds)
        code = process.wait()
        if code != -signal.SIGKILL:
            self._check(code)
            return None
        return Kill(moment, self._last_row().get("step", 0), self._where())

    @contextmanager
    def _running(self) -> Iterator[Process]:
        """A process that is killed at the end of the block if it still runs."""
        process = self.start()
        try:
            yield process
        finally:
            process.kill()
            process.wait()

    def _check(self, code: int) -> None:
        if code != 0:
            lines = self.log.read_text(encoding="utf-8", errors="replace").splitlines()[-10:]
            raise UserError("\n  ".join([f"the run ended with exit code {code}; its last lines:", *lines]))

    def _where(self) -> str:
        """The stage of the killed run, by the files that it left."""
        if self.store is not None and not self.store.exists():
            return "building the store"
        if any(self.folder.glob("checkpoints/.[sb]*-*")):
            return "writing a checkpoint"
        if any(self.folder.glob(".model.*-*")):
            return "writing the model"
        row = self._last_row()
        if not row:
            return "starting"
        if row["split"] == "train" and (row["step"] % self.evaluate_every == 0 or row["step"] == self.steps):
            return "evaluating"
        return "after the last step" if row["step"] == self.steps else "training"

    def _last_row(self) -> dict[str, Any]:
        rows = read_rows(self.folder)
        return rows[-1] if rows else {}


class _Watch:
    """A counter of the rows that a process writes; create it before the process starts."""

    def __init__(self, folder: Path):
        run = RunLayout(folder)
        self._lock, self._metrics = run.lock, run.metrics
        self._before = [_stamp(self._lock), _stamp(self._metrics)]

    def rows(self) -> int:
        """The number of lines in metrics.jsonl; -1: the process has not taken its folder yet."""
        if _stamp(self._metrics) != self._before[1]:
            return self._metrics.read_bytes().count(b"\n")
        return 0 if _stamp(self._lock) != self._before[0] else -1


def _stamp(path: Path) -> tuple[int, int, int] | None:
    try:
        status = path.stat()
    except FileNotFoundError:
        return None
    return status.st_ino, status.st_size, status.st_mtime_ns


def draw_moments(times: Sequence[float], number: int, by_time: bool, drawn: random.Random) -> list[Moment]:
    """Random moments between the rows written at `times` (from `WatchedRun.complete`), in order.

    `by_time`: draw uniformly over the time; else uniformly over the rows, because training takes a small part
    of the time.
    """
    gaps = [later - sooner for sooner, later in pairwise(times)]
    rows = drawn.choices(range(len(gaps)), gaps if by_time else None, k=number)
    return sorted(Moment(row, round(drawn.uniform(0.0, gaps[row]), 4)) for row in rows)


def differences(one: Path, other: Path) -> list[str]:
    """The differences of two finished runs: in the rows, the weights and the optimizer's moments."""
    found = []
    for number, rows in enumerate(zip_longest(read_rows(one), read_rows(other)), start=1):
        if rows[0] != rows[1]:
            found.append(f"metrics.jsonl, line {number}: {_unlike(*rows)}")
            break
    files = [_weights(folder) for folder in (one, other)]
    names = sorted(files[0] | files[1])
    return found + [f"{name}: other bytes" for name in names if files[0].get(name) != files[1].get(name)]


def _unlike(one: dict[str, Any] | None, other: dict[str, Any] | None) -> str:
    if one is None or other is None:
        return "one run has more lines than the other"
    return ", ".join(
        f"{key} {one.get(key)} and {other.get(key)}" for key in one | other if one.get(key) != other.get(key)
    )


def read_rows(folder: Path) -> list[dict[str, Any]]:
    """The rows of metrics.jsonl, without the times."""
    rows = read_metrics(RunLayout(folder).metrics)
    return [{key: value for key, value in row.items() if key not in TIMES} for row in rows]


def _weights(folder: Path) -> dict[str, str]:
    """Hashes of the final model and of the last checkpoint with the optimizer's moments."""
    run = RunLayout(folder)
    kept = {"model": run.model}
    for checkpoint in run.steps()[:1]:  # its folder may have a number at the end of its name
        kept[f"checkpoints/{step_name(checkpoint)}"] = checkpoint
    return {
        f"{name}/{file.relative_to(each)}": file_hash(file)
        for name, each in kept.items()
        for file in sorted(each.rglob("*.safetensors"))
    }
