"""What signals do: Ctrl-C ends a command with a line; a signal stops a run, and a second one ends it."""

import contextlib
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from types import FrameType
from typing import Any

from bertcli.system.terminal import discard, say, visible

owns_process = True
"""True if a second Ctrl-C may end the process; false in a call from Python, whose process is the caller's."""

_lines: list[Callable[[], str]] = []
"""The lines of the blocks of `said_on_ctrl_c` that run now, the innermost last."""


class Stopped(KeyboardInterrupt):
    """A Ctrl-C, or another signal to stop, about which a line is printed already."""


@contextmanager
def said_on_ctrl_c(line: Callable[[], str]) -> Iterator[None]:
    """Print `line()` if Ctrl-C ends the block, unless a block inside has already printed its own line.

    Another Ctrl-C then ends the process without further work, if the process is ours.
    """
    _lines.append(line)
    try:
        yield
    except Stopped:
        raise
    except KeyboardInterrupt:
        if owns_process:
            signal.signal(signal.SIGINT, signal.SIG_DFL)
        say(said := line())
        raise Stopped(said) from None
    finally:
        _lines.pop()


def is_unsaid_ctrl_c(end: BaseException | None) -> bool:
    """True if Ctrl-C led to `end` (typer makes it `SystemExit`) without a line of `said_on_ctrl_c`."""
    while end is not None and not isinstance(end, KeyboardInterrupt):
        end = end.__context__
    return end is not None and not isinstance(end, Stopped)


def hear_ctrl_c() -> None:
    """Let Ctrl-C raise `KeyboardInterrupt`, unless the caller ignores it.

    During an import it ends the process at once, because the import would turn that into errors of its own.
    """
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, _on_ctrl_c)


def _on_ctrl_c(number: int, frame: FrameType | None) -> None:
    inner = frame
    while inner is not None:
        if inner.f_code.co_filename.startswith("<frozen importlib"):
            if sys.stderr is not None:
                _say_in_handler(_lines[-1]() if _lines else "stopped")
            os._exit(130)
        inner = inner.f_back
    signal.default_int_handler(number, frame)


def _say_in_handler(text: str) -> None:
    """Print a line from a signal's handler.

    `say` could fail there: the signal may have interrupted a write to the stream, which then refuses another.
    """
    bar = "\n" if sys.stderr.isatty() else ""
    with contextlib.suppress(OSError):
        os.write(sys.stderr.fileno(), f"{bar}{visible(text)}\n".encode())


def leave_to_parent() -> None:
    """Ignore the signals of terminals and Slurm, which reach every process; a worker's parent decides."""
    for number in (signal.SIGINT, signal.SIGHUP, signal.SIGUSR1):
        signal.signal(number, signal.SIG_IGN)


STOPPING = (
    "stopping: the current step is finished and a checkpoint saved; a second Ctrl-C stops at once, without"
)


class Interrupted(BaseException):
    """The exception that a signal raises during work that may be interrupted."""


@dataclass
class Stop:
    """The first signal that came."""

    signal: int = 0
    """The number of the signal; 0: none."""
    _breaks_off: bool = field(default=False, init=False)

    @contextmanager
    def breaking_off(self) -> Iterator[None]:
        """A context in which the first signal raises `Interrupted` at once, at any line."""
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
    """A context that records and reports the first SIGTERM, SIGUSR1, SIGINT or SIGHUP.

    A second signal prints `lost()` and ends the process with the usual code; in a call from Python it raises
    `SystemExit`. A SIGHUP that is already ignored (nohup) stays ignored. After a SIGHUP, output to the closed
    terminal is discarded and a second SIGHUP is ignored: the shell sends one, and the system sends another
    when the shell ends. After any signal, SIGUSR1 is ignored: Slurm sends it before a job's time ends, to the
    job and to its steps.

    If a signal came, the end of the block raises `SystemExit` with the usual code, so that nothing else
    starts, even if there was nothing left to stop.
    """
    stop = Stop()
    if threading.current_thread() is not threading.main_thread():  # Python delivers signals only there
        yield stop
        return
    terminals = [stream.fileno() for stream in (sys.stdout, sys.stderr) if stream.isatty()]

    def leave(number: int, frame: FrameType | None) -> None:
        _say_in_handler(lost())
        if not owns_process:
            raise SystemExit(128 + number)
        os._exit(128 + number)  # an incomplete file has no final name yet; a resume removes it

    def remember(number: int, frame: FrameType | None) -> None:
        stop.signal = number
        for each, handler in before.items():
            signal.signal(each, handler)
        for each in (signal.SIGINT, signal.SIGTERM):  # torchrun turns a second Ctrl-C into SIGTERM
            signal.signal(each, leave)
        if signal.SIGUSR1 in before:  # Slurm may send it to the job and to each of its steps
            signal.signal(signal.SIGUSR1, signal.SIG_IGN)
        if number == signal.SIGHUP:
            signal.signal(number, signal.SIG_IGN)
            for terminal in terminals:
                discard(terminal)
        _say_in_handler(STOPPING)
        stop.heed()

    heeded = [signal.SIGTERM, signal.SIGINT]
    if signal.getsignal(signal.SIGUSR1) == signal.SIG_DFL:  # the default would end the process at once
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


class Guard:
    """The handlers of a program that calls bertcli. A Ctrl-C waits while `begin` and `ends` are called."""

    def __init__(self, begin: Callable[[], None], *ends: Callable[[], None]) -> None:
        self.holds, self._entered, self._outer = True, False, owns_process
        self._begin, self._ends = begin, ends
        self._is_held = False
        self._handlers: dict[int, Any] = {}
        if threading.current_thread() is threading.main_thread():  # only there can handlers be set
            self._handlers = {number: signal.getsignal(number) for number in signal.valid_signals()}

    def enter(self) -> None:
        """Call `begin`; from now on a second Ctrl-C does not end the process."""
        global owns_process
        if self._handlers and callable(self._handlers[signal.SIGINT]):
            signal.signal(signal.SIGINT, self._on_ctrl_c)
        self._entered = True
        if self._handlers:
            owns_process = False
        self._begin()
        self.holds = False
        self._deliver()

    def _on_ctrl_c(self, number: int, frame: FrameType | None) -> None:
        if self.holds:
            self._is_held = True
        else:
            self._handlers[signal.SIGINT](number, frame)

    def leave(self) -> None:
        """Call each of `ends`, and put all handlers back, if `enter` was called."""
        global owns_process
        if not self._entered:
            return
        for end in self._ends:
            end()
        if not self._handlers:
            return
        owns_process = self._outer
        for number, handler in self._handlers.items():
            if handler is not None and number != signal.SIGINT and signal.getsignal(number) != handler:
                signal.signal(number, handler)
                if number == signal.SIGCHLD:
                    _let_loaders_watch_again()
        if self._handlers[signal.SIGINT] is not None:
            signal.signal(signal.SIGINT, self._handlers[signal.SIGINT])
        self._deliver()

    def _deliver(self) -> None:
        if self._is_held:
            self._is_held = False
            signal.raise_signal(signal.SIGINT)


def _let_loaders_watch_again() -> None:
    """Let the next loader of torch set a handler of SIGCHLD again; torch sets it only once."""
    handling = sys.modules.get("torch.utils.data._utils.signal_handling")
    if handling is not None:
        handling.__dict__["_SIGCHLD_handler_set"] = False
