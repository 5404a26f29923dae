"""Pieces of work: each is done once, by one process, and none begins after an error."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from bertcli.corpus import pieces
from bertcli.corpus.pieces import ERROR, LOGS, Pieces, Stage
from bertcli.system.errors import UserError
from bertcli.system.files import lock_file

FILES = 5


def write(folder: Path, piece: int) -> None:
    if piece == 3:
        raise UserError(f"piece {piece} cannot be read")
    (folder / str(piece)).touch()


@pytest.fixture
def work(tmp_path: Path) -> Pieces:
    logs = tmp_path / LOGS / "0"
    logs.mkdir(parents=True)
    return Pieces(Stage("writing", lambda _: FILES, write), tmp_path, logs, os.getcwd())


def written(work: Pieces) -> list[str]:
    return sorted(path.name for path in work.folder.iterdir() if path.is_file())


def test_a_task_has_every_so_many_pieces(work: Pieces) -> None:
    work(None, 0, 2)
    assert written(work) == ["0", "2", "4"]


def test_after_an_error_no_task_begins(work: Pieces) -> None:
    work(None, 1, 2)
    assert written(work) == ["1"]
    assert (work.folder / ERROR).read_text() == "piece 3 cannot be read"
    work(None, 0, 2)
    assert written(work) == ["1"]


def test_a_piece_in_other_hands_is_waited_for_and_then_refused(
    work: Pieces, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pieces, "_PATIENCE", 0.05)
    with lock_file(work.logs / "0.lock", "", ""):
        work(None, 0, 1)
    said = (work.folder / ERROR).read_text()
    assert f"a part is being written by process {os.getpid()} on " in said
    assert said.endswith("; wait for it, and run this again")
    assert written(work) == []
