"""The number of rows of each step, and of all steps before it."""

from __future__ import annotations

import numpy as np

from bertcli.config.ramp import ends, value_at


class BatchSizes:
    """Rows of a step: always as many, or a ramp, rounded.

    A row's number in the endless stream is that of its step's first row plus its place in the step, so that a
    step's rows depend on the sizes of the steps before it alone.
    """

    def __init__(self, value: int | tuple[int, int], ramp_steps: int) -> None:
        """`ramp_steps`: as in `config.ramp.value_at`."""
        self.largest = max(ends(value))
        self._end = ends(value)[1]
        moving = ramp_steps if len(set(ends(value))) > 1 else 0
        sizes = [round(value_at(value, step, ramp_steps)) for step in range(moving)]
        self._before = np.concatenate([[0], np.cumsum(sizes, dtype=np.int64)])

    def of(self, step: int) -> int:
        """Rows of step `step`, counted from 0."""
        return self.before(step + 1) - self.before(step)

    def before(self, step: int) -> int:
        """Rows of all steps before `step`."""
        ramp_steps = len(self._before) - 1
        return int(self._before[min(step, ramp_steps)]) + max(0, step - ramp_steps) * self._end
