"""The line of a run's progress at every width."""

from __future__ import annotations

import io
from typing import Any

import pytest

from bertcli.training.progress import LEAST_BAR, RunBar, bar_line, duration, forms

NUMBERS = forms("mlm 6.025 (5.5%) | nsp 0.693 (50.0%)", "mlm 6.025 | nsp 0.693", 27_654.0)
STATE: dict[str, Any] = {
    "prefix": "pretrain",
    "n": 60,
    "total": 400,
    "initial": 0,
    "to_come": 340,
    "rate": 20.0,
    "ascii": True,
}


@pytest.mark.parametrize(
    ("width", "line"),
    [
        (120, "pretrain 60/400 |BAR| 0:17 left | mlm 6.025 (5.5%) | nsp 0.693 (50.0%) | 27,654 tokens/s"),
        (93, "pretrain 60/400 |BAR| 0:17 left | mlm 6.025 (5.5%) | nsp 0.693 (50.0%) | 28k tokens/s"),
        (90, "pretrain 60/400 | 0:17 left | mlm 6.025 (5.5%) | nsp 0.693 (50.0%) | 27,654 tokens/s"),
        (79, "pretrain 60/400 |BAR| 0:17 left | mlm 6.025 (5.5%) | nsp 0.693 (50.0%)"),
        (70, "pretrain 60/400 | 0:17 left | mlm 6.025 (5.5%) | nsp 0.693 (50.0%)"),
        (60, "pretrain 60/400 | 0:17 left | mlm 6.025 | nsp 0.693"),
        (45, "pretrain 60/400 | 0:17 left | mlm 6.025"),
        (30, "pretrain 60/400 | 0:17 left"),
        (20, "pretrain 60/400"),
        (5, "pretr"),
    ],
)
def test_what_matters_most_is_kept_longest(width: int, line: str) -> None:
    shown = bar_line(STATE, NUMBERS, width)
    parts = shown.split("|")
    if "|BAR|" in line:
        assert len(shown) == width
        assert len(parts[1]) >= LEAST_BAR
        parts[1] = "BAR"
    assert "|".join(parts) == line


def test_the_time_left_counts_how_long_the_rows_to_come_are(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ten steps of 128 tokens are done, in two seconds; ten of 512 follow."""

    def tokens(step: int) -> float:
        return 128.0 * min(step, 10) + 512.0 * max(0, step - 10)

    bar = RunBar(total=20, desc="pretrain", file=io.StringIO(), disable=False)
    bar.work = tokens
    bar.n, bar.start_t = 10, 0.0
    monkeypatch.setattr(bar, "_time", lambda: 2.0)
    assert "| 0:08 left" in str(bar)
    bar.close()


def test_no_line_is_wider_than_the_terminal() -> None:
    long = STATE | {"n": 999_999, "total": 1_000_000, "rate": 0.001}
    for width in range(200):
        for state in (STATE, long, STATE | {"n": 0, "rate": None, "elapsed": 0.0}):
            for numbers in (NUMBERS, ()):
                assert len(bar_line(state, numbers, width)) <= width


def test_before_the_first_numbers_there_are_steps_and_a_bar() -> None:
    line = bar_line(STATE | {"n": 0, "rate": None, "elapsed": 0.0}, (), 40)
    assert line.startswith("pretrain 0/400 |  ")
    assert "left" not in line


def test_durations() -> None:
    assert [duration(each) for each in (7.4, 65, 3723)] == ["0:07", "1:05", "1:02:03"]


@pytest.mark.parametrize(
    ("speed", "shown"), [(950, "950"), (2_765, "2.8k"), (27_654, "28k"), (1_234_567, "1.2M")]
)
def test_a_speed_is_shortened(speed: float, shown: str) -> None:
    assert forms("", "", speed)[1] == f" | {shown} tokens/s"
