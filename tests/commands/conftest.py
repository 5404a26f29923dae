from pathlib import Path

import pytest

from bertcli import cli
from tests.hf.folders import saved_model, saved_task


@pytest.fixture
def run_bertcli(monkeypatch, capsys):
    """(exit code, standard output, standard error) of a command line."""

    def run(*arguments):
        monkeypatch.setattr("sys.argv", ["bertcli", *map(str, arguments)])
        with pytest.raises(SystemExit) as exit_:
            cli.main()
        captured = capsys.readouterr()
        return exit_.value.code or 0, captured.out, captured.err

    return run


@pytest.fixture
def model(tmp_path):
    saved_model(tmp_path / "run" / "model")
    return tmp_path / "run"


@pytest.fixture(scope="session")
def models(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a model of every task."""
    folder = tmp_path_factory.mktemp("models")
    for kind in ("classification", "multi-label", "regression", "tokens", "questions", "choices"):
        saved_task(folder / kind, kind, max_positions=128)
    return folder
