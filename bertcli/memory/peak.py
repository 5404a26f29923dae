"""The most memory that this process has held so far."""

from __future__ import annotations

import resource
import sys

import torch


def peak_memory(device: torch.device) -> int:
    """Bytes: of a GPU what torch reserved; else the high-water mark of the process's resident memory."""
    if device.type == "cuda":
        return torch.cuda.max_memory_reserved(device)
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)


def forget_peak(device: torch.device) -> None:
    """Begin anew on a GPU; a process's high-water mark stays."""
    if device.type == "cuda":
        torch.cuda.reset_peak_memory_stats(device)
