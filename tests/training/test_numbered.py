"""The newest of folders that share a name is the one written last."""

from __future__ import annotations

from pathlib import Path

from bertcli.folders.sealed import write_folder
from bertcli.training.checkpoint import free_path, newest_path


def write(folder: Path, text: str) -> Path:
    path = free_path(folder)

    def fill(partial: Path) -> None:
        (partial / "weights").write_text(text)

    write_folder(path, fill)
    return path


def test_the_newest_is_the_one_written_last_whatever_is_damaged_or_removed(tmp_path: Path) -> None:
    best = tmp_path / "best"
    assert write(best, "first") == write(best, "second") == newest_path(best) == best
    (best / "weights").write_text("damaged")
    assert write(best, "third") == newest_path(best) == tmp_path / "best.1"
    (best / "weights").unlink()
    (best / "manifest.json").unlink()
    best.rmdir()
    assert write(best, "fourth") == newest_path(best) == tmp_path / "best.1"
    assert (newest_path(best) / "weights").read_text() == "fourth"
    (tmp_path / "best.2").mkdir()
    (tmp_path / "best.1" / "weights").write_text("damaged")
    assert write(best, "fifth") == newest_path(best)
