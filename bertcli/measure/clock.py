"""What time it is on a device, and which one it is."""

from __future__ import annotations

import time

import torch


def now(device: torch.device) -> float:
    """Seconds from a point of no meaning, once the device has done all that it was asked to."""
    if device.type == "cuda":
        torch.cuda.synchronize(device)
    return time.perf_counter()


def device_name(device: torch.device) -> str:
    """For people: the GPU's name, or cpu."""
    return torch.cuda.get_device_name(device) if device.type == "cuda" else "cpu"
