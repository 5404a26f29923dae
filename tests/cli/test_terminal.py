"""Control characters of data on a terminal, in messages, and in a pipe."""

from __future__ import annotations

import json
import os
import sys
from contextlib import nullcontext
from pathlib import Path

import pytest

from bertcli.system.terminal import (
    BETWEEN_LINES,
    SILENCE,
    guard_streams,
    say,
    told_while_silent,
    visible,
    working,
)
from tests.folders.folders import saved_task
from tests.terminals import on_a_terminal

NASTY = "the \x1b]0;owned\x07\x9b31m\x7f\u202ecat"


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("model")
    saved_task(folder, "multi-label")
    return folder


def test_control_characters_are_spelled_out() -> None:
    assert visible(NASTY) == r"the \x1b]0;owned\x07\u009b31m\u007f\u202ecat"
    assert visible("a\tb\nc é ☺ हिन्दी \u200f") == "a\tb\nc é ☺ हिन्दी \u200f"
    assert visible("a\rb") == r"a\x0db"


def test_data_does_not_drive_a_terminal(model: Path, tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    path.write_text(json.dumps({"text": NASTY}) + "\n" + json.dumps({NASTY: 1}) + "\n")
    shown, _ = on_a_terminal("predict", model, "--text", "text", "--input", path)
    answer, message = shown.splitlines()[:2]
    assert json.loads(answer)["text"] == NASTY  # still JSON, and exact
    assert message.startswith(f"error: {path}, line 2: no key 'text'; its keys: the \\x1b]0;owned")
    assert not set(shown) & set("\x1b\x07\x9b\x7f\u202e")


def test_a_pipe_is_exact_and_messages_are_not(run_bertcli, model: Path) -> None:
    code, out, err = run_bertcli("predict", model, NASTY, "--input", NASTY)
    assert (code, out) == (2, "")
    assert "\x1b" not in err
    _, out, _ = run_bertcli("predict", model, NASTY)
    assert NASTY in out
    _, _, err = run_bertcli("embed", model / NASTY, "a")
    assert r"\x1b]0;owned\x07\u009b31m" in err


def test_what_is_written_to_a_closed_terminal_is_discarded(monkeypatch: pytest.MonkeyPatch) -> None:
    """The write fails before the SIGHUP of the same moment is handled."""
    ours, its = os.openpty()
    with os.fdopen(its, "w") as stream:
        monkeypatch.setattr(sys, "stderr", stream)
        guard_streams()
        os.close(ours)
        with pytest.raises(OSError, match="Input/output"):
            os.write(its, b"step 1")
        for _ in range(2):
            say("step 1")
        assert os.write(its, b"step 1") == 6


@pytest.mark.parametrize(
    ("command", "lines"),
    [
        ("evaluate MODELS/classification --data FILE", ["FILE: 2 rows read", "2 of 2 rows answered"]),
        ("predict MODELS/classification --input FILE --output OUT", ["2 rows answered"]),
        ("similarity MODELS/vectors a --text premise --input FILE", ["3 rows answered"]),
        ("embed MODELS/vectors --text premise --input FILE --json", ["2 rows answered"]),
    ],
)
def test_what_a_silent_command_says(run_bertcli, models, tmp_path, monkeypatch, command, lines) -> None:
    class Asked(list):
        def append(self, line) -> None:
            super().append(line)
            asked.append(line)

    asked, file = [], tmp_path / "rows.csv"
    file.write_text("premise,hypothesis,gold\nthe cat,a dog,yes\nthe mat,it ran,no\n")
    monkeypatch.setattr("bertcli.system.terminal._at_work", Asked())
    for short, long in {"MODELS": models, "FILE": file, "OUT": tmp_path / "out.csv"}.items():
        command = command.replace(short, str(long))
    assert run_bertcli(*command.split())[0] == 0
    said = {line() for line in asked}
    assert {line.replace("FILE", str(file)) for line in lines} <= said


def test_nothing_is_silent_for_more_than_five_seconds_or_says_the_same_twice() -> None:
    assert BETWEEN_LINES < SILENCE <= 5


def test_a_command_that_prints_nothing_says_that_it_is_at_work(monkeypatch, capsys) -> None:
    monkeypatch.setattr("bertcli.system.terminal.SILENCE", 0.01)
    with told_while_silent():
        for block, line in (
            (nullcontext(), "still at work; Ctrl-C stops ("),
            (working(lambda: "3 rows"), "3 rows ("),
        ):
            with block:
                shown = ""
                while line not in shown:
                    shown += capsys.readouterr().err
