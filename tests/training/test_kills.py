"""Watching, killing and comparing runs; the runs are a few lines of Python that write what a run writes."""

from __future__ import annotations

import random
import subprocess
import sys
from pathlib import Path

import pytest

from bertcli.system.errors import UserError
from bertcli.training.kills import Kill, Moment, WatchedRun, differences, draw_moments

RUN = """
import json, sys, time
from pathlib import Path
root, loss, slow = Path(sys.argv[1]), float(sys.argv[2]), int(sys.argv[3])
(root / "checkpoints").mkdir(parents=True, exist_ok=True)
(root / ".lock").write_text(str(time.time_ns()))
metrics = root / "metrics.jsonl"
rows = metrics.read_text().splitlines()[:2] if metrics.exists() else []
metrics.write_text("".join(row + "\\n" for row in rows))
partial = root / "checkpoints" / ".step-4.partial"
for step in range(len(rows), 7):
    if step > len(rows):
        with open(metrics, "a") as file:
            row = {"step": step, "split": "train", "loss": loss * step, "seconds": time.time()}
            file.write(json.dumps(row) + "\\n")
    if step == 4:
        partial.mkdir(exist_ok=True)
    time.sleep(0.5 if step == slow else 0.01)
    if step == 4:
        partial.rmdir()
for folder in ("model", "checkpoints/step-00000006/model"):
    (root / folder).mkdir(parents=True, exist_ok=True)
    (root / folder / "model.safetensors").write_text(sys.argv[2])
"""


def run_in(folder: Path, loss: float = 0.5, slow: int = 9, program: str = RUN) -> WatchedRun:
    """Rests for long after the row `slow`."""
    log = folder.with_suffix(".log")
    command = [sys.executable, "-c", program, str(folder), str(loss), str(slow)]

    def start() -> subprocess.Popen[bytes]:
        with open(log, "wb") as file:
            return subprocess.Popen(command, stderr=file)

    return WatchedRun(folder, None, steps=6, evaluate_every=3, start=start, log=log)


def test_the_times_of_an_undisturbed_run_are_those_of_its_rows(tmp_path: Path) -> None:
    times = run_in(tmp_path / "run").complete()
    assert len(times) == 8  # its folder taken, six rows, the end
    assert times == sorted(times)


@pytest.mark.parametrize(
    ("moment", "where"),
    [
        (Moment(0, 0.0), "starting"),
        (Moment(2, 0.0), "training"),
        (Moment(3, 0.0), "evaluating"),
        (Moment(4, 0.1), "writing a checkpoint"),
    ],
)
def test_a_kill_tells_where_it_struck_and_the_run_goes_on(tmp_path: Path, moment: Moment, where: str) -> None:
    run, undisturbed = run_in(tmp_path / "run", slow=moment.row), run_in(tmp_path / "undisturbed")
    undisturbed.complete()
    assert run.kill(moment) == Kill(moment, moment.row, where)
    assert run.kill(Moment(5, 0.0)) is not None  # counted in what this process wrote, not in what it found
    run.complete()
    assert differences(undisturbed.folder, run.folder) == []


def test_a_run_that_ends_too_soon_is_not_killed(tmp_path: Path) -> None:
    assert run_in(tmp_path / "run").kill(Moment(99, 0.0)) is None


def test_a_run_that_fails_says_why(tmp_path: Path) -> None:
    run = run_in(tmp_path / "run", program="import sys; sys.exit('no such corpus')")
    for use in (run.complete, lambda: run.kill(Moment(0, 0.0))):
        with pytest.raises(UserError, match=r"exit code 1; its last lines:\n  no such corpus"):
            use()


def test_every_difference_counts(tmp_path: Path) -> None:
    one, other = run_in(tmp_path / "one"), run_in(tmp_path / "other", loss=0.5000000000000001)
    one.complete()
    other.complete()
    assert differences(one.folder, one.folder) == []
    assert differences(one.folder, other.folder) == [
        "metrics.jsonl, line 1: loss 0.5 and 0.5000000000000001",
        "checkpoints/step-00000006/model/model.safetensors: other bytes",
        "model/model.safetensors: other bytes",
    ]
    lines = (one.folder / "metrics.jsonl").read_text().splitlines()
    (other.folder / "metrics.jsonl").write_text("\n".join(lines[:-1]) + "\n")
    assert differences(one.folder, other.folder)[0] == (
        "metrics.jsonl, line 6: one run has more lines than the other"
    )


def test_moments_are_drawn_by_seed_between_the_rows() -> None:
    times = [1.0, 1.5, 1.6, 9.6]
    drawn = [draw_moments(times, 200, by_time, random.Random(3)) for by_time in (True, False, False)]
    assert drawn[1] == drawn[2]
    for moments in drawn:
        assert moments == sorted(moments)
        assert all(0.0 <= each.seconds <= times[each.row + 1] - times[each.row] for each in moments)
    counts = [[sum(each.row == row for each in moments) for row in range(3)] for moments in drawn]
    assert counts[0][2] > 170  # most of the time is there
    assert min(counts[1]) > 40
