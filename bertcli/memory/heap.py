"""The heap that a CPU's tensors are in: what a step has freed stays for the next one."""

from __future__ import annotations

import ctypes
import os

_TRIM_THRESHOLD, _TOP_PAD, _MMAP_THRESHOLD = -1, -2, -3
"""Of mallopt(3)."""


def keep_freed_memory() -> None:
    """Where C's library is glibc: let it keep large blocks for the process when they are freed.

    Else it gives them back to the system, which fills each page with zeros again, at every step.
    """
    if not (hasattr(os, "confstr_names") and "CS_GNU_LIBC_VERSION" in os.confstr_names):
        return
    library = ctypes.CDLL(None)
    library.mallopt(_MMAP_THRESHOLD, 1 << 30)
    library.mallopt(_TRIM_THRESHOLD, 2**31 - 1)
    library.mallopt(_TOP_PAD, 64 << 20)
