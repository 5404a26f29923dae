"""A run that is killed and resumed is the run that was never disturbed, to the last bit."""

from __future__ import annotations

import json
import os
import pty
import select
import signal
import subprocess
import threading
from pathlib import Path
from typing import Any

import pytest

from bertcli.config.load import load_config
from bertcli.config.schema import PretrainConfig
from bertcli.training import pretraining
from tests.small_runs import (
    losses,
    read_rows,
    run_cli,
    small_config,
    start_and,
    start_and_signal,
    write_config,
)

DROPOUT = {"layers": 2, "hidden": 32, "heads": 4, "feed_forward": 64, "max_positions": 32, "dropout": 0.1}


def config_file(corpus: Path, folder: Path, **sections) -> Path:
    training = {"precision": "fp32", "steps": 12} | sections.pop("training", {})
    return write_config(
        folder / "config.yaml",
        small_config(corpus, folder / "run", training=training, model=DROPOUT, **sections),
    )


@pytest.fixture(scope="module")
def undisturbed(corpus: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("undisturbed")
    result = run_cli("pretrain", config_file(corpus, folder))
    assert result.returncode == 0, result.stderr
    return folder / "run"


def assert_same(run: Path, undisturbed: Path) -> None:
    assert losses(run / "metrics.jsonl") == losses(undisturbed / "metrics.jsonl")
    for name in ("model/model.safetensors", "checkpoints/step-00000012/optimizer.safetensors"):
        assert (run / name).read_bytes() == (undisturbed / name).read_bytes(), name


def assert_no_step_was_lost(config: Path, run: Path, undisturbed: Path) -> None:
    newest = max((run / "checkpoints").iterdir())
    state = json.loads((newest / "state.json").read_text())
    assert state["step"] == read_rows(run / "metrics.jsonl", "train")[-1]["step"]
    assert run_cli("pretrain", config, "--resume").returncode == 0
    assert_same(run, undisturbed)


def test_killed_runs_end_as_the_undisturbed_one(corpus: Path, undisturbed: Path, tmp_path: Path) -> None:
    config, run = config_file(corpus, tmp_path), tmp_path / "run"
    for step in (3, 7, 11):  # before the first checkpoint, between two, just before the end
        assert start_and_signal("pretrain", config, run, step, signal.SIGKILL) == -signal.SIGKILL
    result = run_cli("pretrain", config, "--resume")
    assert result.returncode == 0, result.stderr
    assert "resuming from" in result.stderr
    assert_same(run, undisturbed)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGUSR1])
def test_a_signal_saves_first(
    corpus: Path, undisturbed: Path, tmp_path: Path, number: signal.Signals
) -> None:
    config, run = config_file(corpus, tmp_path), tmp_path / "run"
    assert start_and_signal("pretrain", config, run, 7, number) == 128 + number
    assert_no_step_was_lost(config, run, undisturbed)


def test_a_lost_terminal_saves_first(corpus: Path, undisturbed: Path, tmp_path: Path) -> None:
    config, run = config_file(corpus, tmp_path), tmp_path / "run"
    ours, its = pty.openpty()
    terminal: dict[str, Any] = {"stdin": its, "stdout": its, "stderr": its, "start_new_session": True}

    lost = threading.Event()

    def read() -> None:  # what nobody reads stops who writes it
        while not lost.is_set():
            if select.select([ours], [], [], 0.01)[0]:
                os.read(ours, 4096)

    reader = threading.Thread(target=read)
    reader.start()

    def hang_up(process: subprocess.Popen[str]) -> None:
        lost.set()
        reader.join()
        os.close(ours)

    code = start_and(hang_up, "pretrain", config, run, 7, **terminal)
    os.close(its)
    assert code == 128 + signal.SIGHUP
    assert_no_step_was_lost(config, run, undisturbed)


def test_an_evaluation_broken_off_by_a_signal_comes_first_when_the_run_goes_on(
    corpus: Path, undisturbed: Path, tmp_path: Path
) -> None:
    path, metrics, whole = config_file(corpus, tmp_path), tmp_path / "run/metrics.jsonl", pretraining.evaluate
    config = load_config(PretrainConfig, path)
    for step in (6, 12):

        def evaluate_or_hear(*arguments: Any, at: int = step, **more: Any) -> Any:
            if read_rows(metrics)[-1]["step"] == at:
                signal.raise_signal(signal.SIGTERM)
            return whole(*arguments, **more)

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(pretraining, "evaluate", evaluate_or_hear)
            with pytest.raises(SystemExit):
                pretraining.pretrain(config, resume=True, overwrite=False)
        last = read_rows(metrics)[-1]
        assert (last["split"], last["step"]) == ("train", step)
    assert run_cli("pretrain", path, "--resume").returncode == 0
    assert_same(tmp_path / "run", undisturbed)


def test_a_damaged_checkpoint_is_named_and_passed_over(
    corpus: Path, undisturbed: Path, tmp_path: Path
) -> None:
    config, run = config_file(corpus, tmp_path), tmp_path / "run"
    start_and_signal("pretrain", config, run, 11, signal.SIGTERM)
    newest = max((run / "checkpoints").iterdir())
    damaged = newest / "model" / "model.safetensors"
    content = bytearray(damaged.read_bytes())
    content[len(content) // 2] ^= 1
    damaged.write_bytes(content)
    result = run_cli("pretrain", config, "--resume")
    assert result.returncode == 0, result.stderr
    assert f"{newest.name} is damaged (the content of model/model.safetensors has changed)" in result.stderr
    assert "step-00000010, step 10" in result.stderr
    assert_same(run, undisturbed)


def test_half_precision_resumes_as_exactly(corpus: Path, tmp_path: Path) -> None:
    """In fp16, which has a loss scale to keep."""
    sections = {"training": {"precision": "fp16", "steps": 6}, "checkpoint": {"every_steps": 3}}
    whole, halves = tmp_path / "whole", tmp_path / "halves"
    for folder in (whole, halves):
        folder.mkdir()
    assert run_cli("pretrain", config_file(corpus, whole, **sections)).returncode == 0
    config = config_file(corpus, halves, **sections)
    assert start_and_signal("pretrain", config, halves / "run", 5, signal.SIGKILL) == -signal.SIGKILL
    assert run_cli("pretrain", config, "--resume").returncode == 0
    assert losses(halves / "run" / "metrics.jsonl") == losses(whole / "run" / "metrics.jsonl")
    weights = [(folder / "run" / "model" / "model.safetensors").read_bytes() for folder in (whole, halves)]
    assert weights[0] == weights[1]
