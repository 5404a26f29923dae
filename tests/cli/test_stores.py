"""The options of an engine: each is refused where nothing would read it."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.small_runs import small_config, write_config


@pytest.fixture
def config(tmp_path: Path) -> Path:
    (tmp_path / "corpus.txt").write_text("One sentence. Another one.\n")
    return write_config(tmp_path / "config.yaml", small_config(tmp_path / "corpus.txt", tmp_path / "run"))


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--tasks", 2], "--tasks and --workers are for an engine; give --engine as well"),
        (["--engine", "local", "--dry-run"], "--dry-run shows the jobs of Slurm; give --engine slurm"),
        (["--dry-run"], "--dry-run shows the jobs of Slurm"),
    ],
)
def test_options_that_nothing_reads_are_refused(
    config: Path, options: list[str], said: str, run_bertcli
) -> None:
    code, printed, told = run_bertcli("prepare", config, *options)
    assert (code, printed) == (2, "")
    assert told.startswith(f"error: {said}")


def test_an_engine_and_torchrun_are_refused(
    config: Path, run_bertcli, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("bertcli.training.ranks.num_ranks", lambda: 2)
    monkeypatch.setattr("bertcli.training.ranks.on_first", lambda work: work())
    code, _, told = run_bertcli("prepare", config, "--engine", "local")
    assert code == 2
    assert "--engine divides the work itself; run the command without torchrun" in told
