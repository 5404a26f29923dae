"""How long a run is."""

from __future__ import annotations

import math
from bisect import bisect_left

from bertcli.config.ramp import ends
from bertcli.config.schema import DEFAULT_STEPS, PretrainConfig
from bertcli.config.section import AUTO
from bertcli.data.batch_sizes import BatchSizes
from bertcli.data.pair_rules import tokens_until
from bertcli.text.frame import Frame


def num_steps(config: PretrainConfig, frame: Frame, num_tokens: float) -> int:
    """The number of steps; an epoch is the number of full rows that hold the corpus's tokens once."""
    data, training = config.data, config.training
    if training.epochs is None:
        return training.steps or DEFAULT_STEPS
    tokens = training.epochs * num_tokens
    fewest = tokens_until(data, frame, BatchSizes(min(ends(training.batch_size)), 1), step=1)
    numbers = range(math.ceil(tokens / max(1, fewest)) + 1)

    def read(steps: int, ramp: int) -> int:
        return tokens_until(data, frame, BatchSizes(training.batch_size, ramp), step=steps)

    steps = bisect_left(numbers, tokens, lo=1, key=lambda steps: read(steps, ramp=steps))
    if training.ramp_steps in (AUTO, steps):
        return steps
    return bisect_left(numbers, tokens, lo=1, key=lambda steps: read(steps, training.ramp_steps))


def ramp_steps(config: PretrainConfig, steps: int) -> int:
    """`training.ramp_steps` in a run of `steps`."""
    return steps if config.training.ramp_steps == AUTO else config.training.ramp_steps
