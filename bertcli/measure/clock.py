"""The time on a device, and the name of the device."""

from __future__ import annotations

import time

import torch


def now(device: torch.device) -> float:
    """Seconds from an arbitrary start, read once the device has finished all its work."""
    if device.type == "cuda":
        torch.cuda.synchronize(device)
    return time.perf_counter()


def device_name(device: torch.device) -> str:
    """For people: the GPU's name, or cpu."""
    return torch.cuda.get_device_name(device) if device.type == "cuda" else "cpu"
