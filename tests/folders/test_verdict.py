"""`verdict.json`: what a run said at its end is there for those who come later."""

from __future__ import annotations

from pathlib import Path

import pytest

from bertcli.folders.mark import Note, is_own_file, write_note
from bertcli.folders.run_layout import KeptVerdict, read_verdict, write_verdict
from bertcli.system.errors import UserError

VERDICT = KeptVerdict(12, ["verdict: accuracy 0.9 is 0.1 above always answering 'é'"], {"accuracy": 0.8})


@pytest.fixture
def path(tmp_path: Path) -> Path:
    write_note(tmp_path, Note("run"))
    return tmp_path / "verdict.json"


def test_a_verdict_is_read_as_it_was_written_and_belongs_to_the_run(path: Path) -> None:
    assert read_verdict(path) is None
    write_verdict(path, VERDICT)
    assert read_verdict(path) == VERDICT
    assert is_own_file(path)
    write_verdict(path, KeptVerdict(24, ["verdict: none"]))
    assert read_verdict(path) == KeptVerdict(24, ["verdict: none"], {})


def test_a_foreign_file_is_not_replaced(path: Path) -> None:
    path.write_text("mine")
    with pytest.raises(UserError, match="not what bertcli wrote"):
        write_verdict(path, VERDICT)
    assert path.read_text() == "mine"


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"step": "x", "lines": []}', '{"step": 1, "lines": 2}'])
def test_a_damaged_verdict_is_named(path: Path, text: str) -> None:
    path.write_text(text)
    with pytest.raises(UserError, match=r"verdict.json: damaged .*--resume"):
        read_verdict(path)
