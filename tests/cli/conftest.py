from pathlib import Path

import pytest

from bertcli.advice.bench.probe import probe
from tests.folders.folders import saved_model


@pytest.fixture
def model(tmp_path):
    saved_model(tmp_path / "run" / "model")
    return tmp_path / "run"


@pytest.fixture
def init_here(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Short measurements of `init`; and a folder of its own, in which `runs/` and `bertcli.yaml` are."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("bertcli.advice.bench.timing.SIZES", {"cpu": (64,)})
    for name in ("fit_pretraining", "finetuning"):
        monkeypatch.setattr(f"bertcli.advice.init.{name}.probe", lambda plan, seconds: probe(plan, 0.2))
    for name in ("pretraining", "finetuning"):
        monkeypatch.setattr(f"bertcli.advice.init.{name}.start_seconds", lambda module: 1.0)
