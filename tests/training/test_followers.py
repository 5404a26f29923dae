"""Trackers follow a run: each step once, also after a kill; whatever they do, the run ends as it would."""

from __future__ import annotations

import importlib
import importlib.util
import json
import os
import signal
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
import yaml

from bertcli.folders.mark import NOTE, read_note
from bertcli.folders.run_layout import KeptVerdict, RunLayout, write_verdict
from bertcli.system.errors import UserError
from bertcli.system.files import lock_file
from bertcli.training import followers, run_folder
from bertcli.training.followers import Followers, follow
from bertcli.training.run_folder import remove_run
from bertcli.training.trackers import TRACKERS, Entry, Row, Tracker
from tests.small_runs import read_rows, run_cli, small_config, write_config, write_corpus


class Recorded(Tracker):
    """A tracker that keeps what it is told in a file."""

    modules = ()

    @staticmethod
    def files(id: str) -> Sequence[str]:
        return (f"{id}.told", "inner/*", "inner")

    def open(self, entry: Entry) -> None:
        (entry.folder / "inner").mkdir()
        self.path, self.told = entry.folder / f"{entry.id}.told", [entry.name, entry.config]

    def log(self, rows: Sequence[Row]) -> None:
        self.told.append([row["step"] for row in rows])

    def close(self, end: Any, verdict: Sequence[str], card: str | None) -> None:
        self.path.write_text(json.dumps([*self.told, [end, list(verdict), card]]))


class Told:
    def __init__(self, *words: str | None):
        self.words = iter(words)

    def wait(self) -> Any:
        return next(self.words)


@pytest.fixture
def layout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> RunLayout:
    layout = RunLayout(tmp_path / "run")
    layout.model.mkdir(parents=True)
    layout.config.write_text(yaml.safe_dump({"seed": 1, "training": {"steps": 4}}))
    (layout.model / "README.md").write_text("# Card")
    run_folder.write_note(layout.root, run_folder.Note("run", {}))
    write_verdict(layout.verdict, KeptVerdict(4, ["good"]))
    write_steps(layout, 1, 2, 3)
    monkeypatch.setitem(TRACKERS, "wandb", Recorded)  # type: ignore[arg-type]
    return layout


def write_steps(layout: RunLayout, *steps: int) -> None:
    lines = [json.dumps({"step": step, "split": "train", "loss": 1.0}) + "\n" for step in steps]
    layout.metrics.write_text("".join(lines))


def test_a_follower_takes_all_rows_the_verdict_and_the_card_and_begins_anew_on_a_resume(
    layout: RunLayout,
) -> None:
    folder = layout.trackers / "wandb"
    follow("wandb", layout, Told(None, "stopped"))
    (first,) = folder.glob("*.told")
    config = {"seed": 1, "training.steps": 4}
    assert json.loads(first.read_text()) == ["run", config, [1, 2, 3], ["stopped", [], None]]
    write_steps(layout, 1, 2, 3, 4)
    follow("wandb", layout, Told("finished"))
    (second,) = folder.glob("*.told")
    assert first == second
    assert json.loads(second.read_text()) == ["run", config, [1, 2, 3, 4], ["finished", ["good"], "# Card"]]


def test_a_row_that_is_not_complete_is_taken_when_it_is(layout: RunLayout) -> None:
    whole = layout.metrics.read_text()
    layout.metrics.write_text(whole[:-10])

    class Writing(Told):
        def wait(self) -> Any:
            with open(layout.metrics, "a") as file:
                file.write(whole[-10:] if (word := super().wait()) else "")
            return word

    follow("wandb", layout, Writing(None, "stopped"))
    (path,) = (layout.trackers / "wandb").glob("*.told")
    assert json.loads(path.read_text())[2:4] == [[1, 2], [3]]


def test_a_folder_with_files_of_others_is_left_as_it_is(layout: RunLayout) -> None:
    folder = layout.trackers / "wandb"
    folder.mkdir(parents=True)
    (folder / "mine.txt").write_text("mine")
    with pytest.raises(
        UserError, match=r"wandb holds mine.txt, which bertcli did not write; move it elsewhere"
    ):
        follow("wandb", layout, Told("finished"))
    assert sorted(path.name for path in folder.iterdir()) == [".lock", "mine.txt"]


def test_an_overwritten_run_takes_only_its_own_files_along(layout: RunLayout, tmp_path: Path) -> None:
    follow("wandb", layout, Told("finished"))
    (layout.model / "README.md").unlink()
    folder, elsewhere = layout.trackers / "wandb", tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "other.txt").write_text("mine")
    (folder / "inner").rmdir()
    (folder / "inner").symlink_to(elsewhere)  # the link goes, what it leads to stays
    (layout.trackers / "notes.txt").write_text("mine")
    (folder / "thesis.json").write_text("mine")
    assert remove_run(layout.root) == [layout.trackers / "notes.txt", folder / "thesis.json"]
    assert (elsewhere / "other.txt").exists()
    assert read_note(folder) is None


def test_an_entry_that_is_still_written_is_not_removed(
    layout: RunLayout, monkeypatch: pytest.MonkeyPatch
) -> None:
    follow("wandb", layout, Told("finished"))
    monkeypatch.setattr(run_folder, "GRACE", 0.1)
    folder = layout.trackers / "wandb"
    with (
        lock_file(folder / followers.LOCK, "", ""),
        pytest.raises(UserError, match=r"wandb is in use by process .* wait for its end"),
    ):
        remove_run(layout.root)
    assert (folder / NOTE).exists()


@pytest.fixture
def started(layout: RunLayout):
    """A tracker of the layout that runs, and its process."""
    crowd = Followers(layout)
    crowd.start(["tensorboard"])
    yield crowd, crowd._processes["tensorboard"]
    crowd._processes.clear()


def test_a_tracker_that_dies_is_one_warning(started: tuple[Followers, subprocess.Popen[bytes]]) -> None:
    crowd, process = started
    said: list[str] = []
    crowd.check(said.append)
    assert said == []
    process.kill()
    process.wait()
    crowd.check(said.append)
    crowd.check(said.append)
    assert said == [
        "warning: the tracker tensorboard is off: it ended with exit code -9. The run does not need it, and "
        "--resume completes the entry"
    ]


def test_a_tracker_that_hangs_is_left_behind(
    started: tuple[Followers, subprocess.Popen[bytes]],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    crowd, process = started
    os.kill(process.pid, signal.SIGSTOP)
    monkeypatch.setattr(followers, "GRACE", 0.2)
    with crowd:
        crowd.check()
    assert "the tracker tensorboard is off: it was not done 0.2 s after the run" in capsys.readouterr().err
    assert process.wait() == -signal.SIGKILL


def test_ctrl_c_leaves_the_trackers_and_not_the_run(
    started: tuple[Followers, subprocess.Popen[bytes]],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    crowd, process = started
    wait = process.wait

    def interrupted(timeout: float) -> int:
        if timeout == 1.1 * followers.GRACE:
            raise KeyboardInterrupt
        return wait(timeout)

    monkeypatch.setattr(process, "wait", interrupted)
    with crowd:
        pass
    assert "the trackers are left behind; --resume completes their entries" in capsys.readouterr().err
    assert process.returncode == -signal.SIGKILL


def test_a_tracker_that_cannot_start_is_one_warning(
    layout: RunLayout, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def refuse(*arguments: Any, **options: Any) -> None:
        raise BlockingIOError(11, "Resource temporarily unavailable")

    monkeypatch.setattr(subprocess, "Popen", refuse)
    with Followers(layout) as crowd:
        crowd.start(["mlflow"])
    assert "the tracker mlflow is off: [Errno 11] Resource temporarily" in capsys.readouterr().err


def test_a_run_goes_on_without_the_tracker_that_fails(tmp_path: Path) -> None:
    pytest.importorskip("tensorboard")
    text = write_corpus(tmp_path / "corpus.txt", documents=8)
    sections = {"logging": {"trackers": ["tensorboard"]}, "training": {"steps": 4}}
    config = write_config(tmp_path / "c.yaml", small_config(text, tmp_path / "run", **sections))
    done = run_cli("pretrain", config)
    assert done.returncode == 0, done.stderr
    note = tmp_path / "run" / "trackers" / "tensorboard" / NOTE
    note.write_text("{}")  # now its files prove nothing
    done = run_cli("pretrain", config, "--resume", "--set", "training.steps=6")
    assert done.returncode == 0
    assert done.stderr.count("warning: the tracker tensorboard is off: ") == 1
    assert "which bertcli did not write" in done.stderr
    assert read_rows(tmp_path / "run" / "metrics.jsonl", "train")[-1]["step"] == 6


def test_what_is_not_installed_is_named_with_its_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name == "alembic" else name)
    with pytest.raises(
        UserError, match=r"mlflow needs alembic, .* pip install 'bertcli\[mlflow\]'; or leave mlflow"
    ):
        followers.check_trackers(["wandb", "mlflow"])
