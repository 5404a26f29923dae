"""Steps read ahead by processes of their own."""

import os
import signal
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from multiprocessing.queues import Queue

import torch
from torch.utils.data import DataLoader, Dataset

from bertcli.batches.share import MicroBatch
from bertcli.system.errors import UserError
from bertcli.system.signals import leave_to_parent


def load_steps(
    read: Callable[[int], list[MicroBatch]], steps: range, workers: int
) -> Iterator[list[MicroBatch]]:
    """The micro-batches of `steps`, in order, which `read` makes in `workers` processes; 0: in this one."""
    loader = DataLoader(
        _Steps(read),
        batch_size=None,
        sampler=steps,
        num_workers=workers,
        prefetch_factor=4 if workers else None,
        worker_init_fn=_begin_worker,
        pin_memory=torch.cuda.is_available(),
    )
    return _received(loader)


def _received(steps: Iterable[list[MicroBatch] | UserError]) -> Iterator[list[MicroBatch]]:
    try:
        for step in steps:
            if isinstance(step, UserError):
                raise step
            yield step
    except EOFError as error:  # the command line would take it for the user's Ctrl-D
        raise ConnectionResetError("a loader process died while it sent a batch") from error


@dataclass(frozen=True)
class _Steps(Dataset[list[MicroBatch] | UserError]):
    """The steps that a loader process reads. A `UserError` is returned, because torch would add a traceback
    to it."""

    read: Callable[[int], list[MicroBatch]]

    def __getitem__(self, step: int) -> list[MicroBatch] | UserError:
        try:
            return self.read(step)
        except UserError as error:
            return error


def _begin_worker(worker: int) -> None:
    """Leave signals to the training process, and end where a batch cannot be sent."""
    leave_to_parent()
    signal.signal(signal.SIGBUS, signal.SIG_DFL)
    Queue._on_queue_feeder_error = staticmethod(_end_worker)  # pyright: ignore[reportAttributeAccessIssue]


def _end_worker(error: BaseException, _: object) -> None:
    """End a process that could not send a batch; otherwise the receiving process would wait forever."""
    if "shared memory" in str(error) or "No space left" in str(error):
        os.kill(os.getpid(), signal.SIGBUS)  # the system's signal for a write to full shared memory
    os._exit(1)
