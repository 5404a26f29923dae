from pathlib import Path

import pytest

from bertcli.advice.bench.probe import probe
from tests.folders.folders import saved_model


@pytest.fixture
def model(tmp_path):
    saved_model(tmp_path / "run" / "model")
    return tmp_path / "run"


@pytest.fixture(autouse=True)
def short_measurements(monkeypatch: pytest.MonkeyPatch) -> None:
    """Speeds are measured for a moment only: these tests look at what is said of them."""
    monkeypatch.setattr("bertcli.advice.bench.timing.SIZES", {"cpu": (64,)})
    for name in ("bench.estimate", "init.fit_pretraining", "init.finetuning"):
        monkeypatch.setattr(f"bertcli.advice.{name}.probe", lambda plan, seconds=0.2: probe(plan, 0.2))


@pytest.fixture
def init_here(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A folder of its own for `init`, in which `runs/` and `bertcli.yaml` are."""
    monkeypatch.chdir(tmp_path)
    for name in ("fit_pretraining", "finetuning"):
        monkeypatch.setattr(f"bertcli.advice.init.{name}.start_seconds", lambda module: 1.0)


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A pretrained model with first weights, which is read and never changed."""
    folder = tmp_path_factory.mktemp("model")
    saved_model(folder)
    return folder
