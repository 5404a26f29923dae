"""How much memory this process holds, and the most that it has held."""

from __future__ import annotations

import os
import resource
import sys
from pathlib import Path

import torch


def peak_memory(device: torch.device) -> int:
    """Bytes: on a GPU the most that torch has reserved; else the peak of the process's resident memory."""
    if device.type == "cuda":
        return torch.cuda.max_memory_reserved(device)
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)


def resident_memory(device: torch.device) -> int:
    """Bytes held now: on a GPU reserved by torch; else the process's resident memory."""
    if device.type == "cuda":
        return torch.cuda.memory_reserved(device)
    try:
        return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except OSError:  # not Linux
        return peak_memory(device)
