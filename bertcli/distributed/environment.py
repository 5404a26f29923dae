"""What torchrun says in the environment of each process that it starts."""

from __future__ import annotations

import os

from bertcli.errors import UserError


def read(name: str, default: int, least: int = 0) -> int:
    """A variable's whole number; `default` where it is not set, or empty.

    Raises:
        UserError: it is no number, or less than `least`.
    """
    text = os.environ.get(name, "").strip()
    if not text:
        return default
    if not (text.isdecimal() and int(text) >= least):
        raise UserError(
            f"{name}={text!a} in the environment: a whole number of {least} or more was expected, as "
            f"torchrun sets it. Start the ranks with torchrun; or, to run one process: unset {name}"
        )
    return int(text)


def check(size: int) -> None:
    """That this process, one of `size`, is told which one it is and where the others are.

    Raises:
        UserError: it is not.
    """
    missing = [
        name for name in ("RANK", "MASTER_ADDR", "MASTER_PORT") if not os.environ.get(name, "").strip()
    ]
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
