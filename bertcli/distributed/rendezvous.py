"""The ranks that torchrun started together find each other, and none that it started before."""

from __future__ import annotations

import time
import uuid
from datetime import timedelta
from typing import Any

from torch.distributed.distributed_c10d import PrefixStore
from torch.distributed.rendezvous import rendezvous

from bertcli.errors import UserError


def meet(timeout: timedelta) -> tuple[Any, int, int]:
    """torch.distributed's key-value store, this rank's number, and how many ranks there are.

    torchrun keeps its store when it starts dead ranks again, with all that they had written. A rank that is
    quick would read the address that one of them left. So the first rank names the attempt anew, tells each
    rank that asks, by a name that none had before, and all that they write from then on stands under it.

    Raises:
        UserError: they do not all come.
    """
    store, rank, size = next(rendezvous("env://", timeout=timeout))
    name = uuid.uuid4().hex
    attempt = (
        _name_attempt(store, size, name, timeout=timeout) if rank == 0 else _ask_attempt(store, rank, name)
    )
    return PrefixStore(attempt, store), rank, size


def _ask_attempt(store: Any, rank: int, name: str) -> str:
    store.set(f"asks/{rank}", name)
    attempt = store.get(f"answer/{name}").decode()  # waits for it
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
