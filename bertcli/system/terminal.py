"""Output for people: short forms of numbers and texts, without control characters; the terminal itself."""

import contextlib
import errno
import math
import os
import re
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

Report = Callable[[str], None]
"""A function that takes a line for the user."""

_CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")
"""C0 without tab and line feed, DEL, C1, and overrides of the direction of writing."""


def visible(text: str) -> str:
    """The text with its control characters escaped: `\\x1b`, and above C0 `\\u009b`, as in JSON."""
    return _CONTROL.sub(lambda found: _spelled(ord(found[0])), text)


def _spelled(number: int) -> str:
    return f"\\x{number:02x}" if number < 0x20 else f"\\u{number:04x}"


NONE, ELLIPSIS = "–", "…"


def number(value: float | None) -> str:
    """The number as `1,234,567`, `3.50`, `0.0123` or `5.00e-5`; whole numbers keep all their digits."""
    if value is None or not math.isfinite(value):
        return NONE
    if isinstance(value, int) or abs(value) >= 999.5:
        return f"{value:,.0f}"
    if value == 0:
        return "0"
    short = f"{value:#.3g}" if abs(value) >= 0.001 else f"{value:.2e}"
    return short.replace("e-0", "e-").removesuffix(".")


def percent(value: float | None) -> str:
    """A share of 1 as `34.1%`; shares that would be rounded to 0% or 100% are `<0.1%` or `>99.9%`."""
    if value is None or not math.isfinite(value):
        return NONE
    if 0 < value < 0.0005:
        return "<0.1%"
    return ">99.9%" if 0.9995 <= value < 1 else f"{value:.1%}"


def duration(seconds: float | None) -> str:
    """The time as `42 s`, `6 min` or `3.2 h`."""
    if seconds is None or not math.isfinite(seconds):
        return NONE
    if seconds < 120:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 7200 else f"{seconds / 3600:.1f} h"


def counted(number: int, what: str) -> str:
    """The number of things as `1 document` or `1,234 documents`."""
    return f"{number:,} {what}{'s' * (number != 1)}"


def either(names: Iterable[str]) -> str:
    """The names as `a, b or c`."""
    *others, last = names
    return f"{', '.join(others)} or {last}" if others else last


def short(text: str, most: int) -> str:
    """The text, cut to `most` characters; an ellipsis shows that it was cut."""
    return text if len(text) <= most else text[: most - 1].rstrip() + ELLIPSIS


def around(text: str, start: int, end: int, most: int) -> tuple[int, int]:
    """Start and end of a piece of `text`: at most `most` characters, with `start` to `end` in its middle."""
    room = max(0, most - (end - start)) // 2
    first = max(0, min(start - room, len(text) - most))
    return first, min(len(text), first + most)


class VisibleStream:
    """A text stream that escapes control characters and otherwise acts as the stream behind it."""

    def __init__(self, raw: Any):
        self.raw = raw

    def write(self, text: str) -> int:
        """Write a text with its control characters made visible; returns its length."""
        global _spoken
        _spoken = time.monotonic()
        self.raw.write(visible(text))
        return len(text)

    def writelines(self, lines: Any) -> None:
        """Write several texts."""
        for line in lines:
            self.write(line)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.raw, name)


class LosableTerminal:
    """A text stream to a terminal; what is written after the terminal was closed is discarded.

    Writing fails a moment before SIGHUP arrives, and the signal must decide how the command ends.
    """

    def __init__(self, raw: Any):
        self._raw, self._number = raw, raw.fileno()

    def write(self, text: str) -> int:
        """Write a text; returns its length."""
        self._try(lambda: self._raw.write(text))
        return len(text)

    def flush(self) -> None:
        """Write what is still in memory."""
        self._try(self._raw.flush)

    def _try(self, act: Callable[[], object]) -> None:
        try:
            act()
        except OSError as error:
            if error.errno != errno.EIO:
                raise
            discard(self._number)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._raw, name)


def discard(number: int) -> None:
    """Discard from now on what is written to this file descriptor."""
    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, number)
    os.close(null)


def guard_streams() -> None:
    """Escape control characters from now on: on standard error, and on standard output if it is a terminal.

    Standard output stays exact in a pipe or a file. A terminal of standard error may be closed.
    """
    raw = raw_stream(sys.stderr)
    sys.stderr = VisibleStream(LosableTerminal(raw) if raw.isatty() else raw)
    if sys.stdout.isatty():
        sys.stdout = VisibleStream(raw_stream(sys.stdout))


def raw_stream(stream: Any) -> Any:
    """The stream behind a guarded one, for our own colors and bars."""
    return stream.raw if isinstance(stream, VisibleStream) else stream


def say(text: str) -> None:
    """Print a line for the person at the terminal."""
    print(in_options(text), file=sys.stderr, flush=True)


_KEY = re.compile(r"(set )?\b(?:task|corpus)\.([a-z_]+)(?:\.\d+)?(: true\b|: )?")
_options: ContextVar[Mapping[str, str] | None] = ContextVar("options", default=None)


@contextmanager
def told_in_options(options: Mapping[str, str]) -> Iterator[None]:
    """Name options instead of config keys while the block, a command without a config, runs.

    `options`: key -> `--option`, which `in_options` and `say` use.
    """
    token = _options.set(options)
    try:
        yield
    finally:
        _options.reset(token)


def in_options(text: str) -> str:
    """The text, with `set task.format: jsonl` as `give --format jsonl`, if the command has this option."""
    if _options.get() is None:
        return text
    return _KEY.sub(_in_option, text.replace("leave task.columns out", "give --columns ''"))


def _in_option(found: re.Match[str]) -> str:
    set_, key, colon = found.groups("")
    option = (_options.get() or {}).get(key)
    if option is None:
        return found[0]
    if colon == ": true":
        colon = ""
    return f"give {option}{colon[1:]}" if set_ else f"{option}{colon}"


SILENCE = 5.0
"""Seconds without a line, after which `told_while_silent` speaks."""
BETWEEN_LINES = 4.0
"""Seconds between two lines of a display: fewer than `SILENCE`, so that nothing is said twice."""

_spoken = 0.0
"""The time of the last write to a guarded stream (`time.monotonic`)."""

_at_work: list[Callable[[], str]] = [lambda: "still at work; Ctrl-C stops"]
"""The lines of the blocks of `working` that run now, the innermost last."""


@contextmanager
def working(line: Callable[[], str]) -> Iterator[None]:
    """Let a command that is silent for long print `line()`: what the block does and how far it is.

    An empty line is not printed: the block has a display of its own.
    """
    _at_work.append(line)
    try:
        yield
    finally:
        _at_work.remove(line)


@contextmanager
def told_while_silent() -> Iterator[None]:
    """Print every few seconds what the block does (`working`), while it prints nothing itself."""
    global _spoken
    begun = _spoken = time.monotonic()
    ended = threading.Event()

    def tell() -> None:
        global _spoken
        while not ended.wait(max(0.01, _spoken + SILENCE - time.monotonic())):
            now = time.monotonic()
            if now < _spoken + SILENCE:
                continue
            _spoken = now
            if line := _at_work[-1]():
                with contextlib.suppress(OSError, ValueError):  # the stream is closed
                    say(f"{line} ({now - begun:.0f} s so far)")

    with contextlib.suppress(RuntimeError):  # the system allows no further thread
        threading.Thread(target=tell, daemon=True).start()
    try:
        yield
    finally:
        ended.set()
