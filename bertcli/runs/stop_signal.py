"""SIGTERM, Ctrl-C and a terminal that hangs up -> a note that the loop reads after each step."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from types import FrameType


class Interrupted(BaseException):
    """A signal came to what may be broken off."""


@dataclass
class Stop:
    """What has come so far."""

    signal: int = 0
    """Number of the signal; 0: none."""
    _breaks_off: bool = field(default=False, init=False)

    @contextmanager
    def breaking_off(self) -> Iterator[None]:
        """Around what the first signal ends at once, at any line, by raising `Interrupted`."""
        self._breaks_off = True
        try:
            self.heed()
            yield
        finally:
            self._breaks_off = False

    def heed(self) -> None:
        if self._breaks_off and self.signal:
            self._breaks_off = False  # what is raised while that is cleaned up would be lost
            raise Interrupted


@contextmanager
def stop_signal() -> Iterator[Stop]:
    """Remembers the first SIGTERM, SIGINT or SIGHUP; a second one acts at once, as if nothing caught it.

    SIGHUP is left alone where it is ignored (nohup). What would have been written to the terminal that hung
    up goes nowhere, and a second SIGHUP too: a shell hands on its own, and the system sends one when it ends.

    Raises `SystemExit` with the usual code at the end, if there was one: even where nothing was left to stop,
    what follows does not begin.
    """
    stop = Stop()
    terminals = [stream.fileno() for stream in (sys.stdout, sys.stderr) if stream.isatty()]

    def remember(number: int, frame: FrameType | None) -> None:
        stop.signal = number
        for each, handler in before.items():
            signal.signal(each, handler)
        if number == signal.SIGHUP:
            signal.signal(number, signal.SIG_IGN)
            for terminal in terminals:
                os.dup2(os.open(os.devnull, os.O_WRONLY), terminal)
        stop.heed()

    heeded = [signal.SIGTERM, signal.SIGINT]
    if signal.getsignal(signal.SIGHUP) != signal.SIG_IGN:
        heeded.append(signal.SIGHUP)
    before = {number: signal.signal(number, remember) for number in heeded}
    try:
        yield stop
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    if stop.signal:
        raise SystemExit(128 + stop.signal)
