"""Checkpoints written in the background: what they hold, and when a failure is heard."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file
from torch import Tensor

from bertcli.folders.run_layout import RunLayout
from bertcli.model.architecture import Architecture
from bertcli.model.pretraining import PretrainingModel
from bertcli.system.errors import UserError
from bertcli.training.checkpoint import (
    CheckpointWriter,
    RunState,
    find_damage,
    load_moments_and_counters,
    load_state,
)
from bertcli.training.optimizer import build_optimizer

STEP_1 = "checkpoints/step-00000001"


class Run:
    """A model that has taken one step, and a writer that waits for `may_write`."""

    def __init__(self, folder: Path):
        self.model = PretrainingModel(Architecture(50, 16, 1, 2, 32, 16))
        self.optimizer = build_optimizer(self.model, (0.9, 0.999), 0.01)
        self.may_write = threading.Event()
        self.writer = CheckpointWriter(
            RunLayout(folder), self.model, self.optimizer, self.save_model, keep_last=3
        )
        self.step()

    def step(self) -> None:
        for parameter in self.model.parameters():
            parameter.grad = torch.ones_like(parameter)
        self.optimizer.param_groups[0]["lr"] = 0.1
        self.optimizer.step()

    def save_model(self, path: Path, weights: Mapping[str, Tensor]) -> None:
        assert self.may_write.wait(30)
        path.mkdir()
        save_file(dict(weights), path / "weights")


def test_a_checkpoint_holds_the_run_as_it_was_when_saved(tmp_path: Path) -> None:
    run = Run(tmp_path)
    weights = {name: value.clone() for name, value in run.model.state_dict().items()}
    moments = {name: state["exp_avg"].clone() for name, state in named_state(run)}
    run.writer.save(RunState(step=1, tokens=10))
    run.step()  # goes on while the checkpoint is written
    run.may_write.set()
    run.writer.finish()

    path = tmp_path / STEP_1
    assert find_damage(path) is None
    assert load_state(path) == RunState(step=1, tokens=10)
    saved = load_file(path / "model" / "weights")
    assert all(torch.equal(saved[name], value) for name, value in weights.items())
    assert not torch.equal(saved["pair_head.dense.weight"], run.model.state_dict()["pair_head.dense.weight"])
    assert load_moments_and_counters(path, run.model, run.optimizer, lambda line: None) == load_state(path)
    assert all(torch.equal(state["exp_avg"], moments[name]) for name, state in named_state(run))
    assert all(state["step"] == 1 for _, state in named_state(run))


def named_state(run: Run) -> list[tuple[str, dict[str, Tensor]]]:
    return [(name, run.optimizer.state[parameter]) for name, parameter in run.model.named_parameters()]


def test_a_checkpoint_waits_for_the_one_before(tmp_path: Path) -> None:
    run = Run(tmp_path)
    run.writer.save(RunState(step=1))
    threading.Timer(0.2, run.may_write.set).start()
    run.writer.save(RunState(step=2))
    assert find_damage(tmp_path / STEP_1) is None
    run.writer.finish()
    assert find_damage(tmp_path / "checkpoints" / "step-00000002") is None


def test_what_goes_wrong_in_the_background_is_heard_once(tmp_path: Path) -> None:
    run = Run(tmp_path / "file" / "checkpoints")
    (tmp_path / "file").write_text("in the way")
    run.may_write.set()
    run.writer.save(RunState(step=1))
    with pytest.raises(UserError, match="the checkpoint could not be written: not a directory"):
        run.writer.finish()
    run.writer.check()
