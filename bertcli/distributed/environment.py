"""The environment variables that torchrun sets for each process."""

from __future__ import annotations

import os

from bertcli.errors import UserError


def read(name: str, default: int, least: int = 0) -> int:
    """The integer value of a variable; `default` if it is not set or empty.

    Raises:
        UserError: it is not an integer, or less than `least`.
    """
    text = os.environ.get(name, "").strip()
    if not text:
        return default
    if not (text.isdecimal() and int(text) >= least):
        raise UserError(
            f"{name}={text!a} in the environment: expected an integer of {least} or more, as set by "
            f"torchrun. Start the ranks with torchrun; or, to run one process: unset {name}"
        )
    return int(text)


def check(size: int) -> None:
    """Check the variables with the rank of this process, one of `size`, and the address of the others.

    Raises:
        UserError: one of them is missing or invalid.
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
