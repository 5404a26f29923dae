"""What becomes of a signal: noted, acted on at the end, and a second one at once."""

from __future__ import annotations

import os
import signal

import pytest

from bertcli.engine.stop_signal import stop_signal


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_is_noted_and_ends_what_follows(number: signal.Signals) -> None:
    reached = False
    with pytest.raises(SystemExit) as end, stop_signal() as stop:
        os.kill(os.getpid(), number)
        assert stop.signal == number
        reached = True
    assert reached
    assert end.value.code == 128 + number


def test_a_second_ctrl_c_acts_at_once() -> None:
    with pytest.raises(KeyboardInterrupt), stop_signal():
        os.kill(os.getpid(), signal.SIGINT)
        os.kill(os.getpid(), signal.SIGINT)
        pytest.fail("went on")


def test_without_a_signal_nothing_happens_and_the_handlers_are_put_back() -> None:
    before = [signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)]
    with stop_signal() as stop:
        assert stop.signal == 0
    assert [signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)] == before


def test_an_error_keeps_its_name_although_a_signal_came() -> None:
    with pytest.raises(OSError, match="disk"), stop_signal():
        os.kill(os.getpid(), signal.SIGTERM)
        raise OSError("disk")
