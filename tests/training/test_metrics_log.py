from __future__ import annotations

import json
from pathlib import Path

import pytest

from bertcli.folders.run_layout import RunLayout
from bertcli.system.errors import UserError
from bertcli.training.metrics_log import MetricsLog, cut_back, read_metrics


def row(step: int, split: str = "train") -> dict:
    return {"step": step, "split": split, "loss": 1.0 / step}


def test_rows_come_back_as_written(tmp_path: Path) -> None:
    log = MetricsLog(RunLayout(tmp_path))
    log.write(row(3))
    log.write({"step": 4, "split": "train", "loss": float("nan")})
    log.close()
    rows = read_metrics(tmp_path / "metrics.jsonl")
    assert rows == [row(3), {"step": 4, "split": "train", "loss": None}]  # JSON knows no NaN


def test_cutting_back_drops_later_rows_and_a_torn_last_one(tmp_path: Path) -> None:
    path = tmp_path / "metrics.jsonl"
    rows = [row(1), row(2), row(2, "heldout"), row(3)]
    path.write_text("".join(json.dumps(each) + "\n" for each in rows) + '{"step": 4, "sp')
    said: list[str] = []
    cut_back(path, 2, 1, said.append)
    assert read_metrics(path) == rows[:3]
    assert said == [f"{path}: the last row is incomplete; it is removed"]


@pytest.mark.parametrize(
    ("steps", "step", "lost"),
    [
        ([], 0, None),
        ([], 4, "steps 1 to 4"),
        ([1, 5, 10, 15], 17, None),
        ([1, 5, 10], 15, "steps 11 to 15"),
        ([1, 5], 17, "steps 6 to 17"),
        ([1], 4, None),
        ([1, 10, 20], 28, None),  # logged more often only from now on
        ([10, 15], 17, "steps 1 to 9"),
    ],
)
def test_rows_that_are_lost_are_said(tmp_path: Path, steps: list[int], step: int, lost: str | None) -> None:
    path = tmp_path / "metrics.jsonl"
    if steps:
        path.write_text("".join(json.dumps(row(each)) + "\n" for each in steps))
    said: list[str] = []
    cut_back(path, step, 5, said.append)
    gone = "" if steps else ": the file is gone"
    expected = (
        [] if lost is None else [f"warning: {path}: the rows of {lost} are lost{gone}. The training is"]
    )
    assert [line.partition(" not affected")[0] for line in said] == expected


def test_a_damaged_row_before_the_last_is_an_error(tmp_path: Path) -> None:
    path = tmp_path / "metrics.jsonl"
    path.write_text(f'{json.dumps(row(1))}\n{{"step": 2, "spl\n{json.dumps(row(3))}\n')
    with pytest.raises(UserError, match=r"metrics.jsonl, line 2: damaged: not a row .* new run"):
        cut_back(path, 3, 1, print)


def test_cutting_back_nothing_is_no_error(tmp_path: Path) -> None:
    cut_back(tmp_path / "metrics.jsonl", 0, 1, print)
    assert not (tmp_path / "metrics.jsonl").exists()
