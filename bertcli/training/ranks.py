"""The processes ("ranks") of one run: those that torchrun started, or this one alone.

Every rank runs the same program on its share of each step. Only the first rank makes decisions, writes files
and prints. Every rank must call the functions that communicate, in the same order.
"""

import itertools
import os
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import (
    AbstractContextManager,
    ExitStack,
    contextmanager,
    nullcontext,
    redirect_stderr,
    redirect_stdout,
)
from datetime import timedelta
from typing import Any, TypeVar, cast

import torch
import torch.distributed as dist

from bertcli.system.errors import UserError
from bertcli.training import rendezvous as environment
from bertcli.training.rendezvous import meet

TIMEOUT = timedelta(minutes=5)
"""A rank without a sign of life for this time is considered dead. A process that ends is noticed at once."""

T = TypeVar("T")

_store: Any = None
"""The key-value store of torch.distributed, used only by the current attempt of torchrun."""
_turns = itertools.count()
_groups: list[Any] = []
"""The groups of all runs of this process, which are never deleted. DDP would delete its group while it holds
Python's lock, and would wait for the group's threads, one of which may wait for that lock."""


@contextmanager
def joined() -> Iterator[None]:
    """Join the other ranks that torchrun started; without torchrun, do nothing.

    Raises:
        UserError: torchrun's variables are invalid; GPUs are used and a rank has none of its own; another
            rank died.
    """
    global _store
    size = environment.read("WORLD_SIZE", 1, least=1)
    if size == 1:
        yield
        return
    environment.check(size)
    backend = "gloo"
    if torch.cuda.is_available():
        backend = "cpu:gloo,cuda:nccl"
        torch.cuda.set_device(own_device(torch.device("cuda")))
    try:
        _store, rank, size = meet(TIMEOUT)
        dist.init_process_group(backend, store=_store, rank=rank, world_size=size, timeout=TIMEOUT)
    except dist.DistError as error:
        address = ":".join(os.environ[name] for name in ("MASTER_ADDR", "MASTER_PORT"))
        why = str(error).splitlines()[0]
        raise UserError(
            f"the ranks could not meet at {address} (MASTER_ADDR, MASTER_PORT): {why}. "
            "All ranks need the same address, of a machine that they reach and with a free port"
        ) from None
    _groups.append(dist.group.WORLD)
    try:
        with nullcontext() if rank == 0 else _silence():
            yield
    except RuntimeError as error:
        if not isinstance(error, dist.DistError) and "gloo" not in str(error).lower():
            raise
        raise UserError(
            f"rank {rank} lost another rank, whose own message says why. Saved files are intact: continue "
            "with --resume (torchrun --max-restarts does it automatically)"
        ) from None
    finally:
        dist.destroy_process_group()
        _store = None


@contextmanager
def _silence() -> Iterator[None]:
    """A context without output of this rank; errors are printed outside of the block."""
    with open(os.devnull, "w") as nowhere, redirect_stdout(nowhere), redirect_stderr(nowhere):
        yield


def rank() -> int:
    """The number of this process, 0 without torchrun."""
    return dist.get_rank() if dist.is_initialized() else 0


def num_ranks() -> int:
    """The number of processes of the run, 1 without torchrun."""
    return dist.get_world_size() if dist.is_initialized() else 1


def num_local_ranks() -> int:
    """The number of processes on this machine."""
    return environment.read("LOCAL_WORLD_SIZE", 1, least=1) if num_ranks() > 1 else 1


def is_first() -> bool:
    """True if this is rank 0, which writes the files."""
    return rank() == 0


def after_restart(resume: bool, overwrite: bool) -> tuple[bool, bool]:
    """The two flags as given, or those of a resume if torchrun started the ranks again after one died."""
    restarts = largest(environment.read("TORCHELASTIC_RESTART_COUNT", 0))
    return (True, False) if restarts else (resume, overwrite)


def own_device(device: torch.device) -> torch.device:
    """The device of this rank: `cuda` means a different GPU on each rank."""
    local_rank = environment.read("LOCAL_RANK", -1) if device.type == "cuda" else -1
    if local_rank < 0:
        return device
    found = torch.cuda.device_count()
    if device.index is not None and num_ranks() > 1:
        raise UserError(f"training.device: {device} is one GPU, but each rank needs its own; set it to cuda")
    if local_rank >= found:
        raise UserError(
            f"rank {local_rank} of this machine has no GPU: there are {found}; start torchrun with "
            f"--nproc-per-node {found}"
        )
    return torch.device("cuda", local_rank)


def on_each(work: Callable[[], T]) -> T:
    """The result of `work` on this rank; all ranks wait for the last one, without a time limit.

    Raises:
        UserError: this rank's work raised it.
        SystemExit: code 2, if another rank's work raised a `UserError`, which that rank prints.
    """
    if num_ranks() == 1:
        return work()
    name = f"on_each/{next(_turns)}"
    result, failure = cast(T, None), None
    with _heartbeat(name):
        try:
            result = work()
        except UserError as error:
            failure = error
    _wait_for_all(name)
    if any(gather([failure is not None])):
        raise failure or SystemExit(2)
    return result


def for_parts(number: int, work: Callable[[int], None]) -> None:
    """Do `work` for the parts 0 to `number`, each on the rank of its number. Raises as `on_each`."""
    on_each(lambda: work(rank()) if rank() < number else None)


def on_all(work: Callable[[], T]) -> T:
    """The result of `work` on this rank. Raises `UserError` on every rank if one rank's work raised it, so
    that all ranks go on in the same way."""
    try:
        result, failure = work(), ""
    except UserError as error:
        result, failure = cast(T, None), str(error)
    if failures := list(filter(None, gather([failure]))):
        raise UserError(failures[0])
    return result


def on_first(work: Callable[[], T]) -> T:
    """The result of `work` on every rank; only the first rank does it. Raises as `on_each`."""
    return from_first(on_each(cast(Callable[[], T], work if is_first() else lambda: None)))


@contextmanager
def first_holds(resource: AbstractContextManager[None]) -> Iterator[None]:
    """A context that only the first rank enters, such as a lock; raises as `on_first`."""
    with ExitStack() as held:
        on_first(lambda: held.enter_context(resource))
        yield


def first_then_all(work: Callable[[], T]) -> T:
    """The result of `work` on this rank; the first rank goes first, so the others find its files."""
    results: list[T] = []
    on_first(lambda: results.append(work()))
    return results[0] if results else work()


def from_first(value: T) -> T:
    """The first rank's `value`."""
    if num_ranks() == 1:
        return value
    values = [value]
    dist.broadcast_object_list(values, src=0)
    return values[0]


def gather(values: list[T]) -> list[T]:
    """The values of all ranks, in the order of the ranks."""
    if num_ranks() == 1:
        return values
    parts: list[Any] = [None] * num_ranks()
    dist.all_gather_object(parts, values)
    return list(itertools.chain.from_iterable(parts))


def add_up(values: Sequence[float]) -> list[float]:
    """The sum of each value over all ranks."""
    if num_ranks() == 1:
        return list(values)
    total = torch.tensor(values, dtype=torch.float64)
    dist.all_reduce(total)
    return total.tolist()


def largest(value: int) -> int:
    """The largest of all ranks' values."""
    if num_ranks() == 1:
        return value
    highest = torch.tensor([value])
    dist.all_reduce(highest, dist.ReduceOp.MAX)
    return int(highest)


@contextmanager
def _heartbeat(name: str) -> Iterator[None]:
    """Show the other ranks that this one is alive while it works alone, and that it is done at the end."""
    store, done = _store, threading.Event()

    def beat() -> None:
        while not done.wait(TIMEOUT.total_seconds() / 10):
            store.add(f"{name}/beats", 1)

    thread = threading.Thread(target=beat, daemon=True)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()
    store.add(f"{name}/done", 1)


def _wait_for_all(name: str) -> None:
    beats, last_beat, pause = -1, time.monotonic(), 0.01
    while _store.add(f"{name}/done", 0) < num_ranks():
        if (now := _store.add(f"{name}/beats", 0)) != beats:
            beats, last_beat = now, time.monotonic()
        elif time.monotonic() - last_beat > TIMEOUT.total_seconds():
            raise UserError(f"a rank has not responded for {TIMEOUT}; see its own messages")
        time.sleep(pause)
        pause = min(1.0, 1.5 * pause)
