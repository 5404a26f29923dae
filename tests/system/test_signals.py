"""What becomes of a signal: noted, acted on at the end, and a second one at once."""

from __future__ import annotations

import contextlib
import os
import signal
from collections.abc import Iterator

import pytest

from bertcli.system.signals import Interrupted, stop_signal

reached: list[list[int]] = []
"""What was noted after each signal, where the context came to its end."""


@pytest.fixture(autouse=True)
def heard() -> Iterator[None]:
    """A process that a shell starts in the background ignores Ctrl-C, and one of nohup the end of its
    terminal; what is tested here does not."""
    handlers = {signal.SIGINT: signal.default_int_handler, signal.SIGHUP: signal.SIG_DFL}
    before = {number: signal.signal(number, handler) for number, handler in handlers.items()}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


def send(*numbers: signal.Signals, error: Exception | None = None) -> None:
    noted = []
    with stop_signal(lambda: "all is lost") as stop:
        for number in numbers:
            os.kill(os.getpid(), number)
            noted.append(stop.signal)
        if error is not None:
            raise error
        reached.append(noted)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGUSR1])
def test_a_signal_is_noted_and_ends_what_follows(number: signal.Signals) -> None:
    reached.clear()
    with pytest.raises(SystemExit) as end:
        send(number)
    assert reached == [[number]]
    assert end.value.code == 128 + number


def break_off_twice() -> None:
    with stop_signal(lambda: "all is lost") as stop:
        for number in (signal.SIGTERM, 0):  # the second time it is there before
            with contextlib.suppress(Interrupted), stop.breaking_off():
                os.kill(os.getpid(), number)
                reached.append([])


def test_what_may_be_broken_off_is() -> None:
    reached.clear()
    with pytest.raises(SystemExit):
        break_off_twice()
    assert reached == []


@pytest.mark.parametrize("second", [signal.SIGINT, signal.SIGTERM])
def test_a_second_signal_says_what_is_lost_and_ends_the_process(
    second: signal.Signals, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    codes: list[int] = []
    monkeypatch.setattr(os, "_exit", codes.append)
    with pytest.raises(SystemExit):
        send(signal.SIGINT, second)
    assert codes == [128 + second]
    said = "a checkpoint saved; a second Ctrl-C stops at once, without\nall is lost\n"
    assert capfd.readouterr().err.endswith(said)


def test_a_second_hang_up_is_nothing_new() -> None:
    reached.clear()
    with pytest.raises(SystemExit):
        send(signal.SIGHUP, signal.SIGHUP)
    assert reached == [[signal.SIGHUP] * 2]


def test_a_hang_up_that_is_ignored_stays_so() -> None:
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    with stop_signal(lambda: "all is lost") as stop:
        os.kill(os.getpid(), signal.SIGHUP)
        assert stop.signal == 0
    assert signal.signal(signal.SIGHUP, before) == signal.SIG_IGN


def test_without_a_signal_nothing_happens_and_the_handlers_are_put_back() -> None:
    before = [signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)]
    with stop_signal(lambda: "all is lost") as stop:
        assert stop.signal == 0
    assert [signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)] == before


def test_an_error_keeps_its_name_although_a_signal_came() -> None:
    with pytest.raises(OSError, match="disk"):
        send(signal.SIGTERM, error=OSError("disk"))
