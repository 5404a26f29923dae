"""How fast a device multiplies matrices: the upper limit for every model on it."""

from __future__ import annotations

import torch

from bertcli.hardware import NARROW, Precision
from bertcli.measure.clock import now

SIZES = {"cpu": (1024, 2048), "cuda": (4096, 8192)}
"""Square matrices: large enough for the best rate of a device, small enough to be fast."""


def matmul_rate(device: torch.device, precision: Precision, seconds: float = 0.5) -> float:
    """Operations a second of the fastest product of `SIZES`, each repeated for `seconds`."""
    dtype = NARROW.get(precision, torch.float32)
    return max(_rate(size, device, dtype, seconds=seconds) for size in SIZES[device.type])


def _rate(size: int, device: torch.device, dtype: torch.dtype, seconds: float) -> float:
    a, b, product = (torch.randn(size, size, device=device).to(dtype) for _ in range(3))
    torch.mm(a, b, out=product)
    fastest, begun = float("inf"), now(device)
    while (started := now(device)) - begun < seconds:
        torch.mm(a, b, out=product)
        fastest = min(fastest, now(device) - started)
    return 2 * size**3 / fastest
