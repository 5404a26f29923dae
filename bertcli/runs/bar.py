"""The progress of a run in one line: as much as the terminal is wide, the most important first."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from tqdm import tqdm
from tqdm.std import Bar  # pyright: ignore[reportAttributeAccessIssue]

LEAST_BAR = 10
"""Characters; a shorter bar shows nothing."""
UNKNOWN_WIDTH = 80


class RunBar(tqdm):  # pyright: ignore[reportMissingTypeArgument]
    """tqdm's bar, with a line of our own: `numbers` are shown from the longest form to the shortest."""

    numbers: tuple[str, ...] = ()
    work: Callable[[int], float] = staticmethod(float)
    """What the steps up to a number take together, in any unit; by default all take the same."""

    def __str__(self) -> str:
        state, work = self.format_dict, self.work
        done, steps = state["n"], state["total"]
        of_last = work(done) - work(done - 1) if done else 0.0
        to_come = (work(steps) - work(done)) / of_last if of_last else steps - done
        return bar_line({**state, "to_come": to_come}, self.numbers, _columns(self.fp) - 1)


def forms(losses: str, bare: str, tokens_per_second: float) -> tuple[str, ...]:
    """The numbers of a step, shorter and shorter. `bare`: the losses without accuracies."""
    short = f"{_short(tokens_per_second)} tokens/s"
    return (
        f"{losses} | {tokens_per_second:,.0f} tokens/s",
        f"{losses} | {short}",
        losses,
        f"{bare} | {short}",
        bare,
        bare.partition(" | ")[0],
    )


def bar_line(state: Mapping[str, Any], numbers: tuple[str, ...], width: int) -> str:
    """At most `width` characters. `state`: tqdm's own numbers (`tqdm.format_dict`), and `to_come`: how many
    steps like the last one the remaining work is."""
    done, steps = state["n"], state["total"]
    head = f"{state['prefix']} {done}/{steps}"
    charset = Bar.ASCII if state["ascii"] else Bar.UTF
    for parts, with_bar in _candidates(_left(state), numbers):
        rest = " | ".join(filter(None, parts))
        if with_bar:
            room = width - len(f"{head} || {rest}")
            if room >= LEAST_BAR:
                return f"{head} |{Bar(done / steps, room, charset=charset)}| {rest}"
        elif len(line := f"{head} | {rest}") <= width:
            return line
    return head[:width]


def _candidates(left: str, numbers: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], bool]]:
    """Parts of the line, and whether a bar is with them; the first that fits is shown."""
    full, shorter, *others = numbers or ("", "")
    yield (left, full), True
    yield (left, shorter), True
    yield (left, full), False
    yield (left, shorter), False
    for fewer in others:
        yield (left, fewer), True
        yield (left, fewer), False
    yield (left,), False


def _left(state: Mapping[str, Any]) -> str:
    done = state["n"] - state["initial"]
    rate = state["rate"] or (done / state["elapsed"] if state["elapsed"] else 0.0)
    return f"{duration(state['to_come'] / rate)} left" if rate else ""


def duration(seconds: float) -> str:
    """`1:02:03`, or `2:03` below an hour."""
    minutes, seconds = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{seconds:02d}" if hours else f"{minutes}:{seconds:02d}"


def _short(number: float) -> str:
    for unit, name in ((1e6, "M"), (1e3, "k")):
        if number >= unit:
            return f"{number / unit:.{int(number < 10 * unit)}f}{name}"
    return f"{number:.0f}"


def _columns(stream: Any) -> int:
    try:
        return os.get_terminal_size(stream.fileno()).columns or UNKNOWN_WIDTH
    except OSError:  # the terminal was closed
        return UNKNOWN_WIDTH
