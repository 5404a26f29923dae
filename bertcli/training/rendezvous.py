"""The environment variables that torchrun sets for each process, and the first meeting of the ranks."""

import os
import time
import uuid
from datetime import timedelta
from typing import Any

from torch.distributed.distributed_c10d import PrefixStore
from torch.distributed.rendezvous import rendezvous

from bertcli.system.errors import UserError


def read(name: str, default: int, least: int = 0) -> int:
    """The integer value of a variable; `default` if it is not set or empty.

    Raises:
        UserError: the value is not an integer, or less than `least`.
    """
    text = os.environ.get(name, "").strip()
    if not text:
        return default
    if not (text.isdecimal() and len(text) < 10 and int(text) >= least):
        raise UserError(
            f"{name}={text!a} in the environment: expected an integer of {least} or more, as set by "
            f"torchrun. Start the ranks with torchrun; or, to run one process: unset {name}"
        )
    return int(text)


def check(size: int) -> None:
    """Check the variables for the rank of this process, one of `size`, and for the address of the others.

    Raises:
        UserError: one of them is missing or invalid.
    """
    needed = ("RANK", "MASTER_ADDR", "MASTER_PORT")
    missing = [name for name in needed if not os.environ.get(name, "").strip()]
    if missing:
        raise UserError(
            f"WORLD_SIZE={size} in the environment, but not {' or '.join(missing)}: torchrun sets them all. "
            "Start the ranks with torchrun; or, to run one process: unset WORLD_SIZE"
        )
    port = read("MASTER_PORT", 0)
    if port > 65535:
        raise UserError(f"MASTER_PORT={port} in the environment: a port is at most 65535")
    for name in ("RANK", "LOCAL_RANK"):
        if read(name, 0) >= size:
            raise UserError(f"{name}={read(name, 0)} in the environment: WORLD_SIZE={size} has no such rank")


def meet(timeout: timedelta) -> tuple[Any, int, int]:
    """torch.distributed's key-value store, this rank's number, and the number of ranks.

    When torchrun starts dead ranks again, its store keeps all entries, so a fast rank could read the address
    of a dead one. Therefore the first rank chooses a new name for the attempt. Each other rank asks for it
    under a unique name of its own. All later entries have the attempt's name as prefix.

    Raises:
        UserError: some ranks do not come in time.
    """
    store, rank, size = next(rendezvous("env://", timeout=timeout))
    name = uuid.uuid4().hex
    attempt = _ask_attempt(store, rank, name) if rank else _name_attempt(store, size, name, timeout=timeout)
    return PrefixStore(attempt, store), rank, size


def _ask_attempt(store: Any, rank: int, name: str) -> str:
    store.set(f"asks/{rank}", name)
    attempt = store.get(f"answer/{name}").decode()  # `get` waits for the entry
    store.add(f"{attempt}/here", 1)
    return attempt


def _name_attempt(store: Any, size: int, attempt: str, timeout: timedelta) -> str:
    answered: dict[int, bytes] = {}
    deadline = time.monotonic() + timeout.total_seconds()
    while store.add(f"{attempt}/here", 0) < size - 1:
        for rank in range(1, size):
            if store.check([f"asks/{rank}"]) and (name := store.get(f"asks/{rank}")) != answered.get(rank):
                store.set(f"answer/{name.decode()}", attempt)
                answered[rank] = name
        if time.monotonic() > deadline:
            raise UserError(f"not all of {size} ranks came within {timeout}; see the messages of the others")
        time.sleep(0.02)
    return attempt
