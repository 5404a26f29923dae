"""The commands that a run names for its user to try; tests of the commands run them as they are."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest

from bertcli.tasks.examples import SHOWN, TextExample
from bertcli.training.commands import predict_command

MODEL = Path("model")


def tried(*rows: tuple[str, ...], has_head: bool = True) -> list[str]:
    """The words of the command after `bertcli`."""
    examples = [TextExample("made.tsv, line 1", {}, texts, None) for texts in rows]
    return shlex.split(predict_command(MODEL, examples, has_head))[1:]


def test_a_model_of_vectors_gets_its_own_commands() -> None:
    assert tried(("it was late",)) == ["predict", "model", "it was late"]
    assert tried(("it was late",), has_head=False) == ["embed", "model", "it was late"]
    assert tried(("it was late", "we left"), has_head=False) == [
        "similarity",
        "model",
        "it was late",
        "we left",
    ]


def test_a_text_that_a_command_line_reads_otherwise_is_passed_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "late").touch()
    assert tried(("",), ("-",), ("late",), ("it was",)) == ["predict", "model", "it was"]
    assert tried(("late", "-")) == ["predict", "model", "--", "late", "-"]
    assert tried(("-",)) == ["predict", "model", "TEXT"]


def test_a_long_text_ends_at_the_end_of_a_word_on_one_line() -> None:
    assert tried(("one\ntwo\x00 three",))[-1] == "one two three"
    word = "nine char "
    (*_, short) = tried((word * SHOWN,))
    assert len(short) <= SHOWN
    assert short.endswith(("nine", "char"))
    assert tried(("x" * (SHOWN - 1) + " y",))[-1] == "x" * (SHOWN - 1)
    assert tried(("x" * SHOWN + " y",))[-1] == "x" * SHOWN
    assert tried(("語" * (2 * SHOWN),))[-1] == "語" * SHOWN
