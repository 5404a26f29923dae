from __future__ import annotations

import json
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from bertcli.advice.bench.probe import Probe, probe
from tests.finetunes import spam_config, spam_files
from tests.small_runs import small_config, write_config


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bertcli.advice.bench.timing.SIZES", {"cpu": (64,)})
    monkeypatch.setattr("bertcli.advice.bench.estimate.probe", partial(probe, seconds=0.5))


@pytest.fixture
def config(corpus: Path, tmp_path: Path) -> Path:
    store = {"files": [str(corpus)], "heldout_fraction": 0.2, "store": str(tmp_path / "store")}
    return write_config(tmp_path / "c.yaml", small_config(corpus, tmp_path / "run", corpus=store))


def estimated(run_bertcli, *arguments: object) -> dict:
    code, out, err = run_bertcli("estimate", *arguments, "--json")
    assert code == 0, err
    return json.loads(out)


def test_a_run_whose_store_is_not_built(run_bertcli, config: Path) -> None:
    run = estimated(run_bertcli, config)
    assert (run["kind"], run["steps"], run["calculated"]) == ("pretraining", 12, False)
    assert run["tokens"] == 12 * 8 * 32
    assert run["parameters"]["total"] == sum(run["parameters"].values()) - run["parameters"]["total"]
    memory = run["memory_mb"]
    assert memory["total"] == pytest.approx(sum(memory.values()) - memory["total"])
    assert run["tokens_per_s"] > 0
    assert "the store is not built yet: 400 entries in the vocabulary" in run["given"][0]
    assert not (config.parent / "run").exists()
    assert not (config.parent / "store").exists()


def test_a_run_whose_store_is_built(run_bertcli, config: Path) -> None:
    assert run_bertcli("prepare", config)[0] == 0
    run = estimated(run_bertcli, config)
    assert run["given"] == []
    assert run["tokens"] < 12 * 8 * 32  # not every row is full
    arrays = sum(path.stat().st_size for path in (config.parent / "store").glob("*/*.bin"))
    assert run["disk_mb"]["store"] == pytest.approx(arrays / 1e6)


def test_a_run_by_epochs(run_bertcli, config: Path) -> None:
    epochs = ("--set", "training.steps=null", "--set", "training.epochs=2", "--device", "h100")
    twice = estimated(run_bertcli, config, *epochs)
    assert twice["steps"] > 1
    assert run_bertcli("prepare", config)[0] == 0
    exactly = estimated(run_bertcli, config, *epochs)
    assert twice["steps"] == pytest.approx(exactly["steps"], rel=0.5)  # with few entries, a token is shorter


def test_no_part_of_the_memory_is_less_than_nothing(
    run_bertcli, config: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def frugal(*arguments: Any, **named: Any) -> Probe:
        return replace(probe(*arguments, **named, seconds=0.5), peak=100e6)

    monkeypatch.setattr("bertcli.advice.bench.estimate.probe", frugal)
    memory = estimated(run_bertcli, config)["memory_mb"]
    assert min(memory.values()) == memory["other"] == 0
    besides = memory["total"] - memory["store"] - memory["checkpoint_copy"]
    assert besides == pytest.approx(100)


def test_fine_tuning(run_bertcli, tmp_path: Path) -> None:
    spam_files(tmp_path)
    run = estimated(run_bertcli, write_config(tmp_path / "c.yaml", spam_config(tmp_path)))
    assert (run["kind"], run["steps"]) == ("fine-tuning", 18)
    assert 0 < run["tokens"] < 3 * 96 * 32
    assert set(run["parameters"]) == {"embeddings", "encoder", "pooler", "head", "total"}
    assert run["memory_mb"]["logits"] == 0
    assert not (tmp_path / "run").exists()


def test_frozen_layers_have_no_moments(run_bertcli, tmp_path: Path) -> None:
    spam_files(tmp_path)
    path = write_config(tmp_path / "c.yaml", spam_config(tmp_path))
    whole, frozen = (
        estimated(run_bertcli, path, "--device", "l4", "--set", f"training.freeze_layers={layers}")
        for layers in (0, 2)
    )
    assert frozen["memory_mb"]["moments"] < whole["memory_mb"]["moments"]
    assert frozen["memory_mb"]["weights"] == whole["memory_mb"]["weights"]


def test_muon_keeps_one_moment_of_a_matrix(run_bertcli, config: Path) -> None:
    adamw, muon = (
        estimated(run_bertcli, config, "--device", "l4", "--set", f"training.optimizer={name}")
        for name in ("adamw", "muon")
    )
    matrices = 2 * (4 * 32 * 32 + 2 * 32 * 64) + 32 * 32  # attention, feed-forward; the head's dense layer
    saved = {name: 4 * count * matrices / 1e6 for name, count in (("memory_mb", 1), ("disk_mb", 3))}
    for name, size in saved.items():
        assert adamw[name]["total"] - muon[name]["total"] == pytest.approx(size), name


def test_a_device_that_is_elsewhere_is_calculated(run_bertcli, config: Path) -> None:
    large = ("--set", "model={preset: large}", "--set", "training={batch_size: 256}")
    fast, slow = (estimated(run_bertcli, config, "--device", name, *large) for name in ("H200", "t4"))
    assert fast["calculated"]
    assert (fast["precision"], slow["precision"]) == ("bf16", "fp16")
    assert fast["tokens_per_s"] > 10 * slow["tokens_per_s"]
    assert any("calculated: 35% of the rate" in line for line in fast["given"])


@pytest.mark.parametrize(("device", "compared"), [("h200", True), ("t4", False), (None, True)])
def test_a_gpu_whose_figures_met_no_measurement_says_so(
    run_bertcli, config: Path, device: str | None, compared: bool
) -> None:
    given = () if device is None else ("--device", device)
    assert estimated(run_bertcli, config, *given)["compared"] == compared
    out = run_bertcli("estimate", config, *given)[1]
    (speed,) = [line for line in out.splitlines() if line.startswith("speed ")]
    assert speed.endswith("never compared with a run on this GPU)") == (not compared)
    assert ("t4: no run on this GPU was ever compared" in out) == (device == "t4")


def test_what_does_not_fit_is_warned_of(run_bertcli, config: Path) -> None:
    much = ("--set", "model={preset: large}", "--set", "training={micro_batch_size: 2048, batch_size: 2048}")
    code, out, err = run_bertcli("estimate", config, "--device", "t4", *much)
    assert code == 0
    assert "warning: the run needs about" in err
    assert "GB of memory, and 16.0 GB are free: lower training.micro_batch_size" in err
    assert out.splitlines()[0].startswith("run         pretraining")


def test_a_full_disk_is_warned_of(run_bertcli, config: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Full:
        free = 1000

    monkeypatch.setattr("shutil.disk_usage", lambda path: Full)
    assert "lower checkpoint.keep_last" in estimated(run_bertcli, config, "--device", "l4")["warnings"][-1]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--device", "abacus"), "--device abacus: is unknown"),
        (("--set", "training.stepps=3"), "did you mean training.steps?"),
        (("--set", "corpus.files=[nowhere.txt]"), "nowhere.txt"),
    ],
)
def test_errors(run_bertcli, config: Path, arguments: tuple[str, ...], message: str) -> None:
    code, out, err = run_bertcli("estimate", config, *arguments)
    assert (code, out) == (2, "")
    assert message in err
