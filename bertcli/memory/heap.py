"""The heap of a CPU's tensors: the next step reuses the memory that a step has freed."""

from __future__ import annotations

import ctypes
import os

_TRIM_THRESHOLD, _TOP_PAD, _MMAP_THRESHOLD = -1, -2, -3
"""Parameters of mallopt(3)."""


def keep_freed_memory() -> None:
    """If the C library is glibc, let it keep large blocks that are freed.

    By default it returns them to the system, which then fills each page with zeros at every step.
    """
    if not (hasattr(os, "confstr_names") and "CS_GNU_LIBC_VERSION" in os.confstr_names):
        return
    library = ctypes.CDLL(None)
    library.mallopt(_MMAP_THRESHOLD, 1 << 30)
    library.mallopt(_TRIM_THRESHOLD, 2**31 - 1)
    library.mallopt(_TOP_PAD, 64 << 20)
