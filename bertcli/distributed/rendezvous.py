"""The rendezvous of ranks that torchrun started together, without those of an earlier attempt."""

from __future__ import annotations

import time
import uuid
from datetime import timedelta
from typing import Any

from torch.distributed.distributed_c10d import PrefixStore
from torch.distributed.rendezvous import rendezvous

from bertcli.errors import UserError


def meet(timeout: timedelta) -> tuple[Any, int, int]:
    """torch.distributed's key-value store, this rank's number, and the number of ranks.

    torchrun keeps its store with all entries when it starts dead ranks again, so a fast rank could read the
    address of a dead one. Therefore the first rank chooses a new name for the attempt. Each other rank asks
    for it under a unique name of its own, and all later entries have the attempt's name as prefix.

    Raises:
        UserError: some ranks do not come in time.
    """
    store, rank, size = next(rendezvous("env://", timeout=timeout))
    name = uuid.uuid4().hex
    attempt = (
        _name_attempt(store, size, name, timeout=timeout) if rank == 0 else _ask_attempt(store, rank, name)
    )
    return PrefixStore(attempt, store), rank, size


def _ask_attempt(store: Any, rank: int, name: str) -> str:
    store.set(f"asks/{rank}", name)
    attempt = store.get(f"answer/{name}").decode()  # waits until it is there
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
