"""A run with a flat rate goes on from where its rate began to fall, as if it had never fallen."""

from __future__ import annotations

from pathlib import Path

import pytest

from bertcli.config.load import check_config
from bertcli.config.schema import PretrainConfig
from bertcli.training.checkpoint import load_state
from bertcli.training.pretraining import pretrain
from tests.small_runs import losses, small_config


def run(corpus: Path, folder: Path, steps: int, resume: bool = False) -> Path:
    training = {"steps": steps, "schedule": "stable-decay", "decay_share": 0.25}
    config = small_config(corpus, folder, training=training, evaluation={"every_steps": 100})
    config["checkpoint"] = {"every_steps": 100, "keep_last": 1}
    pretrain(check_config(PretrainConfig, config, "the test"), resume=resume, overwrite=False)
    return folder


def test_more_steps_go_on_from_before_the_decay(
    corpus: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    short = run(corpus, tmp_path / "run", 12)
    assert {path.name for path in (short / "checkpoints").iterdir()} == {"step-00000009", "step-00000012"}
    assert load_state(short / "checkpoints" / "step-00000009").planned == 12
    capsys.readouterr()
    run(corpus, short, 20, resume=True)
    said = capsys.readouterr().err
    assert "step 12 is not used: the learning rate of the shorter run fell after step 9" in said
    assert "resuming from" in said
    assert "step-00000009, step 9" in said
    straight = run(corpus, tmp_path / "straight", 20)
    assert losses(short / "metrics.jsonl") == losses(straight / "metrics.jsonl")
    weights = "model/model.safetensors"
    assert (short / weights).read_bytes() == (straight / weights).read_bytes()
    assert (short / "checkpoints" / "step-00000015").is_dir()


def test_a_finished_run_stays_finished(
    corpus: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run(corpus, tmp_path / "run", 12)
    capsys.readouterr()
    run(corpus, tmp_path / "run", 12, resume=True)
    assert "is finished: 12 of 12 steps" in capsys.readouterr().err
