"""Checkpoints of a run: their folder names, their content, and the thread that writes them.

A folder whose name is in use gets a number: step-00000500.1, step-00000500.2, ...; best.1, best.2, ...
"""

import itertools
import json
import os
import sys
import threading
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path

import torch
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

from bertcli.folders.run_layout import RunLayout, by_number, checkpoint_model
from bertcli.folders.sealed import find_damage, is_intact, is_renamed, remove_own, write_folder
from bertcli.system.files import disk_errors, plain_text
from bertcli.system.terminal import Report, say
from bertcli.training import ranks, wrapping
from bertcli.training.optimizer import LossScale, load_optimizer_tensors, optimizer_tensors


def free_path(folder: Path) -> Path:
    """The result of `newest_path`, or the next free number if that folder is damaged or not bertcli's.

    The number is never lower than that of a complete folder, which `newest_path` would then return.
    """
    path = newest_path(folder)
    numbers = itertools.count(by_number(path)[1] + 1)
    while os.path.lexists(path) and (path.is_symlink() or not is_intact(path)):
        path = folder.with_name(f"{folder.name}.{next(numbers)}")
    return path


def newest_path(folder: Path) -> Path:
    """The complete folder with the highest number; `folder` itself if there is none."""
    found = [path for path in folder.parent.glob(f"{folder.name}.*") if path.suffix[1:].isdecimal()]
    return max([path for path in found if is_intact(path)], key=by_number, default=folder)


SaveModel = Callable[[Path, Mapping[str, Tensor]], None]
"""A function that writes a model folder with the given weights."""


@dataclass(frozen=True)
class RunState:
    """The counters of a run: steps, real tokens, seconds of training, non-finite steps.

    Attributes:
        planned: steps of the whole run when it was saved; 0: unknown.
        loss_scale: the scale for the next step; None except in fp16.
    """

    step: int = 0
    planned: int = 0
    tokens: int = 0
    seconds: float = 0.0
    skipped_steps: int = 0
    bad_steps_in_row: int = 0
    loss_scale: LossScale | None = None


def newest_checkpoint(
    layout: RunLayout,
    report: Report,
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
    checkpoint: Path, model: nn.Module, optimizer: torch.optim.Optimizer, report: Report
) -> RunState:
    """Load the moments of `model`'s parameters into `optimizer`; return the counters. Weights stay."""
    load_optimizer_tensors(model, optimizer, load_file(checkpoint / "optimizer.safetensors"))
    state = load_state(checkpoint)
    report(f"resuming from {checkpoint}, step {state.step}")
    return state


class CheckpointWriter:
    """The writer of checkpoints: one at a time, on the first rank, in a thread.

    Every rank calls `save`. All checkpoints use the same memory for their copy of the weights and of AdamW's
    two moments.
    """

    def __init__(
        self,
        layout: RunLayout,
        model: nn.Module,
        optimizer: torch.optim.Optimizer,
        save_model: SaveModel,
        keep_last: int,
        keep_step: int | None = None,
    ):
        """Nothing is written yet.

        Args:
            keep_last: the number of checkpoints that stay.
            keep_step: the step whose checkpoint is never removed.
        """
        self._layout, self._model, self._optimizer = layout, model, optimizer
        self._save_model, self._keep_last, self._keep_step = save_model, keep_last, keep_step
        self._places: dict[tuple[str, str], Tensor] = {}
        self._thread: threading.Thread | None = None
        self._failure: BaseException | None = None

    def save(self, state: RunState) -> None:
        """Finish the earlier checkpoint, copy the current state of the run and start to write it.

        Raises:
            UserError: the earlier checkpoint could not be written.
        """
        self.finish()
        weights = self._copy("weight", self._model.state_dict())
        moments = self._copy("moment", optimizer_tensors(self._model, self._optimizer))
        if torch.cuda.is_available():
            torch.cuda.synchronize()
        if ranks.is_first():
            write = partial(self._write_aside, state, weights, moments)
            self._thread = threading.Thread(target=write, name="checkpoint", daemon=True)
            self._thread.start()

    def check(self) -> None:
        """Raise the error of the background thread, if there was one."""
        if self._failure is not None:
            failure, self._failure = self._failure, None
            raise failure

    def finish(self) -> None:
        """Wait for the checkpoint that is being written, then call `check`."""
        self.wait()
        self.check()

    def wait(self) -> None:
        """Wait for the checkpoint that is being written; its errors are kept for `check`."""
        if self._thread is not None:
            self._thread.join()
            self._thread = None

    def _copy(self, kind: str, tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """Copies of the full tensors on the first rank, in the memory of the earlier copies; else empty."""
        copies = {}
        for name, tensor in tensors.items():
            tensor = wrapping.full_tensor(tensor)
            if ranks.is_first():
                place = self._places.get((kind, name))
                if place is None:
                    place = torch.empty_like(tensor, device="cpu", pin_memory=tensor.is_cuda)
                    self._places[kind, name] = place
                copies[name] = place.copy_(tensor, non_blocking=True)
        return copies

    def _write_aside(self, state: RunState, weights: dict[str, Tensor], moments: dict[str, Tensor]) -> None:
        if sys.platform == "linux":  # Linux has a priority for each thread: training steps come first
            os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), 10)
        try:
            self.write(state, weights, moments)
        except BaseException as error:
            self._failure = error

    def write(self, state: RunState, weights: dict[str, Tensor], moments: dict[str, Tensor]) -> Path:
        """Write `step-N`, then remove the oldest checkpoints until `keep_last` are left; `save` calls it in a
        thread.

        Incomplete checkpoints are neither counted nor removed.

        Args:
            weights, moments: tensors in CPU memory, by their names in the model.

        Raises:
            UserError: the disk is full or not writable, or the run was moved; earlier checkpoints stay
                intact.
        """

        def fill(folder: Path) -> None:
            self._save_model(checkpoint_model(folder), weights)
            save_file(moments, folder / "optimizer.safetensors")
            (folder / "state.json").write_text(json.dumps(asdict(state), indent=1) + "\n")

        layout, keep_step = self._layout, self._keep_step
        path = free_path(layout.step(state.step))
        with layout.stays(), disk_errors(f"{path}: the checkpoint could not be written"):
            write_folder(path, fill)
            others = [
                old
                for old in layout.steps()
                if old != path and is_intact(old) and (keep_step is None or load_state(old).step != keep_step)
            ]
            for old in others[self._keep_last - (state.step != keep_step) :]:
                if left := remove_own(old):
                    say(f"{old}: removed, except {', '.join(map(str, left))}, not written by bertcli")
        return path
