"""SIGTERM, SIGUSR1, Ctrl-C or a closed terminal -> a flag that the loop reads after each step."""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from types import FrameType

from bertcli import terminal
from bertcli.terminal import discard, say_in_handler

STOPPING = (
    "stopping: the current step is finished and a checkpoint saved; a second Ctrl-C stops at once, without"
)


class Interrupted(BaseException):
    """A signal came during work that may be interrupted."""


@dataclass
class Stop:
    """The signal that has come so far."""

    signal: int = 0
    """Number of the signal; 0: none."""
    _breaks_off: bool = field(default=False, init=False)

    @contextmanager
    def breaking_off(self) -> Iterator[None]:
        """Inside, the first signal raises `Interrupted` at once, at any line."""
        self._breaks_off = True
        try:
            self.heed()
            yield
        finally:
            self._breaks_off = False

    def heed(self) -> None:
        if self._breaks_off and self.signal:
            self._breaks_off = False  # an exception during the cleanup would be lost
            raise Interrupted


@contextmanager
def stop_signal(lost: Callable[[], str]) -> Iterator[Stop]:
    """Records the first SIGTERM, SIGUSR1, SIGINT or SIGHUP, and says so; a second one acts at once.

    The second one prints `lost()` and ends the process with the usual code; in a call from Python it raises
    `SystemExit` at once. SIGHUP stays ignored if it is
    (nohup). After a SIGHUP, output to the closed terminal is discarded and a second SIGHUP is ignored: the
    shell sends one, and the system another when the shell ends. After any signal, SIGUSR1 is ignored: Slurm
    sends it before a job's time ends, to the job and to its steps.

    If there was a signal, raises `SystemExit` with the usual code at the end of the block, so that nothing
    else starts, even if there was nothing left to stop.
    """
    stop = Stop()
    if threading.current_thread() is not threading.main_thread():  # where Python delivers no signal
        yield stop
        return
    terminals = [stream.fileno() for stream in (sys.stdout, sys.stderr) if stream.isatty()]

    def leave(number: int, frame: FrameType | None) -> None:
        say_in_handler(lost())
        if not terminal.owns_process:
            raise SystemExit(128 + number)
        os._exit(128 + number)  # whatever is being written has no name yet, and is removed by a resume

    def remember(number: int, frame: FrameType | None) -> None:
        stop.signal = number
        for each, handler in before.items():
            signal.signal(each, handler)
        for each in (signal.SIGINT, signal.SIGTERM):  # the second is what torchrun makes of a second Ctrl-C
            signal.signal(each, leave)
        if signal.SIGUSR1 in before:  # Slurm may send it to the job and to each of its steps
            signal.signal(signal.SIGUSR1, signal.SIG_IGN)
        if number == signal.SIGHUP:
            signal.signal(number, signal.SIG_IGN)
            for terminal in terminals:
                discard(terminal)
        say_in_handler(STOPPING)
        stop.heed()

    heeded = [signal.SIGTERM, signal.SIGINT]
    if signal.getsignal(signal.SIGUSR1) == signal.SIG_DFL:  # which would end the process at once
        heeded.append(signal.SIGUSR1)
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
