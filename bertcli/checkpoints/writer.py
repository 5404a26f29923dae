"""A run's checkpoints, written in the background: a step waits only for the copy of the weights."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Mapping

import torch
from torch import Tensor, nn

from bertcli.checkpoints.checkpoint import RunState, SaveModel, Snapshot, save_checkpoint
from bertcli.distributed import ranks, wrapping
from bertcli.engine.optimizer import optimizer_tensors
from bertcli.owned.run_layout import RunLayout
from bertcli.terminal import say


class CheckpointWriter:
    """Writes one checkpoint at a time, on the first rank, from a copy whose memory is used for all of them.

    Every rank calls `save`. The copy needs the memory of the weights and of AdamW's two moments.
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
        self._layout, self._model, self._optimizer = layout, model, optimizer
        self._save_model, self._kept = save_model, {"keep_last": keep_last, "keep_step": keep_step}
        self._places: dict[tuple[str, str], Tensor] = {}
        self._thread: threading.Thread | None = None
        self._failure: BaseException | None = None

    def save(self, state: RunState) -> None:
        """Copy the current state of the run and start to write it; an earlier checkpoint is finished first.

        Raises:
            UserError: the earlier one could not be written.
        """
        self.finish()
        weights = self._copy("weight", self._model.state_dict())
        moments = self._copy("moment", optimizer_tensors(self._model, self._optimizer))
        if torch.cuda.is_available():
            torch.cuda.synchronize()
        if ranks.is_first():
            snapshot = Snapshot(state, weights, moments)
            self._thread = threading.Thread(
                target=self._write, name="checkpoint", args=(snapshot,), daemon=True
            )
            self._thread.start()

    def check(self) -> None:
        """Raises an error of the background thread, if there was one."""
        if self._failure is not None:
            failure, self._failure = self._failure, None
            raise failure

    def finish(self) -> None:
        """Wait for the checkpoint that is being written; raises as `check`."""
        self.wait()
        self.check()

    def wait(self) -> None:
        """Wait for the checkpoint that is being written, whatever becomes of it."""
        if self._thread is not None:
            self._thread.join()
            self._thread = None

    def _copy(self, kind: str, tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """Copies of the full tensors, on the first rank, in the memory of the last copies."""
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

    def _write(self, snapshot: Snapshot) -> None:
        if sys.platform == "linux":  # where each thread has its own priority: steps come first
            os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), 10)
        try:
            save_checkpoint(self._layout, snapshot, self._save_model, report=say, **self._kept)
        except BaseException as error:
            self._failure = error
