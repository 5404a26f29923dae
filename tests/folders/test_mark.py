"""What bertcli knows for its own by its marks, and what it sweeps away."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from bertcli.folders import mark as module
from bertcli.folders.mark import MARK, NOTE, new_marked_folder, read_note, sweep
from bertcli.folders.sealed import write_folder


def test_a_mark_under_the_name_of_a_note_is_no_note(tmp_path: Path) -> None:
    shutil.copy(new_marked_folder(tmp_path, "x.partial") / MARK, tmp_path / NOTE)
    assert read_note(tmp_path) is None


def test_a_parent_that_leads_nowhere_is_an_error_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "link").symlink_to("gone")
    names = iter(["00000000", "00000001"])  # more than two tries end the test
    monkeypatch.setattr(module.secrets, "token_hex", lambda size: next(names))
    with pytest.raises(FileExistsError):
        new_marked_folder(tmp_path / "link", "x.partial")
    assert new_marked_folder(tmp_path / "new" / "deep", "x.partial").is_dir()


def test_empty_folders_of_killed_processes_are_swept_and_no_others(tmp_path: Path) -> None:
    gone = [".step-00000005.removed-0123abcd", ".best.partial-0123abcd"]
    kept = [".mine", ".step-00000005.removed", "step-00000005.removed-0123abcd", ".best.removed-0123abcd"]
    for name in gone + kept:
        (tmp_path / name).mkdir()
    (tmp_path / kept[-1] / "mine.txt").write_text("mine")
    sweep([tmp_path])
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(kept)


def test_what_a_killed_process_left_is_removed_and_what_a_living_one_needs_is_not(tmp_path: Path) -> None:
    ended = subprocess.Popen([sys.executable, "-c", ""])
    ended.wait()
    killed, living, foreign, other = (new_marked_folder(tmp_path, "out.partial") for _ in range(4))
    for folder, process in (
        (killed, ended.pid),
        (living, os.getppid()),
        (foreign, ended.pid),
        (other, ended.pid),
    ):
        host = "elsewhere" if folder == foreign else module.socket.gethostname()
        value = {"folder": folder.name, "process": process, "host": host}
        (folder / MARK).write_text(module._signed(value))
    other = other.rename(tmp_path / ".other.partial-01234567")
    (tmp_path / ".out.partial-89abcdef").mkdir()
    write_folder(tmp_path / "out", lambda partial: None)
    left = {path.name for path in tmp_path.iterdir()}
    assert left == {living.name, foreign.name, other.name, ".out.partial-89abcdef", "out"}
