from __future__ import annotations

import gc
import os
from collections.abc import Iterator
from pathlib import Path

# The models of the suite are too small for two threads to help, and the suite runs on all cores already.
# Set before torch is imported, and passed on to the processes that tests start.
os.environ["OMP_NUM_THREADS"] = "1"

import pytest
from hypothesis import settings

from bertcli.cli import main as cli
from tests.folders.folders import saved_task, saved_vectors
from tests.small_runs import write_corpus

settings.register_profile("bertcli", deadline=None)  # a speed is a benchmark, never a test
settings.load_profile("bertcli")


def pytest_collection_finish() -> None:
    """Leave the objects of imported modules, half a million, out of each later collection of garbage."""
    gc.collect()
    gc.freeze()


@pytest.fixture(scope="session", autouse=True)
def no_waiting_for_the_disk() -> Iterator[None]:
    """`os.fsync` guards against a power cut alone, which no test makes: files are the same without it."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("os.fsync", lambda descriptor: None)
        yield


@pytest.fixture(scope="session")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small English corpus of 40 documents; stores may be built beside it."""
    return write_corpus(tmp_path_factory.mktemp("corpus") / "corpus.txt")


@pytest.fixture
def run_bertcli(monkeypatch, capsys):
    """(exit code, standard output, standard error) of a command line."""

    def run(*arguments):
        monkeypatch.setattr("bertcli.system.terminal.SILENCE", 1e6)  # on a busy machine too, the same lines
        monkeypatch.setattr("sys.argv", ["bertcli", *map(str, arguments)])
        with pytest.raises(SystemExit) as exit_:
            cli.main()
        captured = capsys.readouterr()
        return exit_.value.code or 0, captured.out, captured.err

    return run


@pytest.fixture(scope="session")
def models(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a model of every task, and one of sentence vectors."""
    folder = tmp_path_factory.mktemp("models")
    for kind in ("classification", "multi-label", "regression", "tokens", "questions", "choices"):
        saved_task(folder / kind, kind, max_positions=128)
    saved_vectors(folder / "vectors")
    return folder
