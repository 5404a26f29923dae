"""Checkpoints: everything for an exact resume of a run, written atomically and verified when read.

checkpoints/step-00000500/
    model/                  a model folder like the final one
    optimizer.safetensors   the moments of AdamW by parameter name
    state.json              the counters of the run
    manifest.json           the hashes of these files, written last (`bertcli.owned.sealed`)

A damaged checkpoint or a foreign folder of this name is kept, and the new one is step-00000500.1.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

import torch
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

from bertcli.checkpoints.numbered import free_path
from bertcli.engine.loss_scale import LossScale
from bertcli.engine.optimizer import load_optimizer_tensors
from bertcli.files import disk_errors, plain_text
from bertcli.owned.folders import remove_own, write_folder
from bertcli.owned.run_layout import RunLayout, checkpoint_model
from bertcli.owned.sealed import find_damage, is_intact, is_renamed

SaveModel = Callable[[Path, Mapping[str, Tensor]], None]
"""Writes a model folder with these weights."""


@dataclass(frozen=True)
class RunState:
    """The counters of a run: steps, real tokens, seconds of training, non-finite steps.

    `planned`: steps of the whole run when it was saved; 0: unknown. `loss_scale` is for the next step; None
    except in fp16.
    """

    step: int = 0
    planned: int = 0
    tokens: int = 0
    seconds: float = 0.0
    skipped_steps: int = 0
    bad_steps_in_row: int = 0
    loss_scale: LossScale | None = None


@dataclass(frozen=True)
class Snapshot:
    """The content of a checkpoint, in CPU memory: weights and moments by their names in the model."""

    state: RunState
    weights: dict[str, Tensor]
    moments: dict[str, Tensor]


def save_checkpoint(
    layout: RunLayout,
    snapshot: Snapshot,
    save_model: SaveModel,
    keep_last: int,
    report: Callable[[str], None] = lambda line: None,
    keep_step: int | None = None,
) -> Path:
    """Write `step-N`, then remove the oldest checkpoints, so that `keep_last` are left.

    Only complete checkpoints are counted and removed, and never that of `keep_step`.

    Raises:
        UserError: the disk is full or not writable, or the run was moved; earlier checkpoints stay intact.
    """

    def fill(partial: Path) -> None:
        save_model(checkpoint_model(partial), snapshot.weights)
        save_file(snapshot.moments, partial / "optimizer.safetensors")
        (partial / "state.json").write_text(json.dumps(asdict(snapshot.state), indent=1) + "\n")

    path = free_path(layout.step(snapshot.state.step))
    with layout.stays(), disk_errors(f"{path}: the checkpoint could not be written"):
        write_folder(path, fill)
        others = [
            old
            for old in layout.steps()
            if old != path and is_intact(old) and (keep_step is None or load_state(old).step != keep_step)
        ]
        for old in others[keep_last - (snapshot.state.step != keep_step) :]:
            if left := remove_own(old):
                report(f"{old}: removed, except {', '.join(map(str, left))}, not written by bertcli")
    return path


def newest_checkpoint(
    layout: RunLayout,
    report: Callable[[str], None],
    usable: Callable[[RunState], bool] | None = None,
) -> Path | None:
    """The newest undamaged checkpoint that is `usable`; damaged ones are reported and skipped."""
    for checkpoint in layout.steps():
        damage = find_damage(checkpoint)
        if damage is not None:
            report(f"warning: {checkpoint} is damaged ({damage}); trying the one before")
        elif is_renamed(checkpoint):
            report(f"warning: {checkpoint} is a copy of another checkpoint; trying the one before")
        elif usable is None or usable(load_state(checkpoint)):
            return checkpoint
    return None


def load_state(checkpoint: Path) -> RunState:
    """The counters of a checkpoint."""
    state = json.loads(plain_text(checkpoint / "state.json"))
    scale = state.get("loss_scale")
    return RunState(**(state | {"loss_scale": scale and LossScale(**scale)}))


def load_moments_and_counters(
    checkpoint: Path, model: nn.Module, optimizer: torch.optim.Optimizer, report: Callable[[str], None]
) -> RunState:
    """Load the moments of `model`'s parameters into `optimizer`; returns the counters. Weights stay."""
    load_optimizer_tensors(model, optimizer, load_file(checkpoint / "optimizer.safetensors"))
    state = load_state(checkpoint)
    report(f"resuming from {checkpoint}, step {state.step}")
    return state
