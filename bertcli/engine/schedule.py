"""The learning rate of a step: a pure function, so a resume needs no scheduler state."""

from __future__ import annotations

import math
from typing import Literal


def learning_rate(
    step: int, peak: float, warmup_steps: int, steps: int, schedule: Literal["linear", "cosine", "constant"]
) -> float:
    """The rate of step `step` (counted from 0) of a run of `steps`.

    Rises linearly to `peak` over the first `warmup_steps`, then falls to 0 at `steps`, linearly or as half
    a cosine wave, or stays (Devlin et al. 2019, appendix A.2: linear).
    """
    if step < warmup_steps:
        return peak * (step + 1) / warmup_steps
    if schedule == "constant":
        return peak
    left = (steps - step) / max(1, steps - warmup_steps)
    return peak * left if schedule == "linear" else peak * (1 - math.cos(math.pi * left)) / 2
