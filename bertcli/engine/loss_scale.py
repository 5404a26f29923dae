"""Loss scaling for fp16, whose range is narrow: the loss is multiplied so that small gradients do not vanish.

Micikevicius et al. 2018, section 3.2, with a dynamic factor: halved when a gradient overflows (that step is
skipped), doubled after `DOUBLE_AFTER` steps without overflow.
"""

from __future__ import annotations

from dataclasses import dataclass

FIRST_FACTOR = 2.0**16
DOUBLE_AFTER = 2000
"""Steps."""


@dataclass(frozen=True)
class LossScale:
    """The factor for the loss of the next step, and the number of steps in a row with this factor."""

    factor: float = FIRST_FACTOR
    steps: int = 0

    def after(self, skipped: bool) -> LossScale:
        """The scale after a step, which was skipped or not."""
        if skipped:
            return LossScale(max(1.0, self.factor / 2))
        if self.steps + 1 == DOUBLE_AFTER:
            return LossScale(2 * self.factor)
        return LossScale(self.factor, self.steps + 1)
