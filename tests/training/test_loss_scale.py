from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from bertcli.training.optimizer import DOUBLE_AFTER, FIRST_FACTOR, LossScale


def after(*skipped: bool) -> LossScale:
    scale = LossScale()
    for is_skipped in skipped:
        scale = scale.after(is_skipped)
    return scale


def test_it_is_halved_when_a_step_is_skipped_and_doubled_after_long_without() -> None:
    assert after().factor == FIRST_FACTOR
    assert after(True, True).factor == FIRST_FACTOR / 4
    good = [False] * DOUBLE_AFTER
    assert after(*good[1:]).factor == FIRST_FACTOR
    assert after(*good) == LossScale(2 * FIRST_FACTOR, 0)
    assert after(*good[1:], True, *good[1:]).factor == FIRST_FACTOR / 2


@given(st.lists(st.booleans(), max_size=60))
def test_it_is_a_power_of_two_and_never_makes_a_loss_smaller(skipped: list[bool]) -> None:
    factor = after(*skipped).factor
    assert factor >= 1.0
    assert factor.hex().startswith("0x1.0000000000000p")
