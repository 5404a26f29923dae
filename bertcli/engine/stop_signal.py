"""SIGTERM and Ctrl-C -> a note that the loop reads after each step."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from types import FrameType


@dataclass
class Stop:
    """What has come so far."""

    signal: int = 0
    """Number of the signal; 0: none."""


@contextmanager
def stop_signal() -> Iterator[Stop]:
    """Remembers the first SIGTERM or SIGINT; a second one acts at once, as if nothing caught it.

    Raises `SystemExit` with the usual code at the end, if there was one: even where nothing was left to stop,
    what follows does not begin.
    """
    stop = Stop()

    def remember(number: int, frame: FrameType | None) -> None:
        stop.signal = number
        for each, handler in before.items():
            signal.signal(each, handler)

    before = {number: signal.signal(number, remember) for number in (signal.SIGTERM, signal.SIGINT)}
    try:
        yield stop
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    if stop.signal:
        raise SystemExit(128 + stop.signal)
