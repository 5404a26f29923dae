"""Child processes run no code that lies in the current folder; one that dies ends the work."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.advice.init.files import FIT
from tests.small_runs import small_config, write_config

CODE = "from pathlib import Path; Path(__file__ + '.ran').touch(); raise SystemExit('of the current folder')"
NAMES = ("random", "yaml", "socket", "pickle", "tempfile")
"""Modules that Python's own processes, torch or bertcli import."""
SCRIPT = """
from bertcli.cli.main import main
from bertcli.corpus import build

if __name__ == "__main__":
    build.num_processes = lambda *given: 2
    main()
"""


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current folder, with files that have the names of modules."""
    folder = tmp_path / "project"
    folder.mkdir()
    for name in NAMES:
        (folder / f"{name}.py").write_text(CODE)
    monkeypatch.chdir(folder)
    return folder


def test_init_starts_no_code_of_the_current_folder(
    here: Path, run_bertcli, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("bertcli.advice.init.fit_pretraining.fit_pretraining", lambda *given, **named: FIT)
    (here / "text.txt").write_text("The cat sat on the mat. It was dark.\n\n" * 200)
    code, _, err = run_bertcli("init", "text.txt", "--for", "pretrain")
    assert code == 0, err
    assert not list(here.glob("*.ran"))


def test_workers_run_no_code_of_the_current_folder(here: Path, corpus: Path, tmp_path: Path) -> None:
    config = small_config(corpus, here / "run")
    config["corpus"]["store"] = str(here / "store")
    write_config(here / "config.yaml", config)
    (tmp_path / "bertcli").mkdir()
    script = tmp_path / "bertcli" / "script.py"  # like the console script, it lies in another folder
    script.write_text(SCRIPT)
    command = [sys.executable, script, "prepare", "config.yaml"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=100)
    assert done.returncode == 0, done.stderr
    assert (here / "store" / "manifest.json").exists()
    assert not list(here.glob("*.ran"))


def test_a_worker_that_dies_before_it_has_read_its_work_ends_all() -> None:
    """Pieces are larger than a pipe holds, so the thread that sends them waits for a reader."""
    program = (
        "import os\n"
        "from bertcli.system.processes import in_processes\n"
        "pieces = [bytes(10**6)] * 9\n"
        "work = in_processes(pieces, lambda piece: (piece,), os._exit, (3,), processes=2, died='one died')\n"
        "list(work)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False, timeout=20
    )
    assert done.stderr.endswith("ProcessDied: one died\n")
