"""The learning rate of a step: a pure function, so a resume needs no scheduler state."""

from __future__ import annotations

import math

from bertcli.config.loop import Schedule


def learning_rate(
    step: int, peak: float, warmup_steps: int, steps: int, schedule: Schedule, decay_share: float = 0.1
) -> float:
    """The rate of step `step` (counted from 0) of a run of `steps`.

    Rises linearly to `peak` over the first `warmup_steps`, then falls to 0 at `steps`, linearly or as half
    a cosine wave, or stays (Devlin et al. 2019, appendix A.2: linear). `stable-decay` stays until
    `decay_begin`, then falls as 1 - sqrt (Hägele et al. 2024, section 4).
    """
    if step < warmup_steps:
        return peak * (step + 1) / warmup_steps
    if schedule == "constant":
        return peak
    if schedule == "stable-decay":
        begin = decay_begin(steps, decay_share)
        return peak if step < begin else peak * (1 - math.sqrt((step - begin) / (steps - begin)))
    left = (steps - step) / max(1, steps - warmup_steps)
    return peak * left if schedule == "linear" else peak * (1 - math.cos(math.pi * left)) / 2


def decay_begin(steps: int, decay_share: float) -> int:
    """The number of steps before the rate falls in `stable-decay`; a longer run has the same steps until
    there."""
    return steps - max(1, round(decay_share * steps))
