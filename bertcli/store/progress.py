"""How much of the corpus has been read: a bar on a terminal, elsewhere a line at intervals."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext

from tqdm import tqdm

from bertcli.terminal import BETWEEN_LINES, raw_stream, working
from bertcli.text.sources import Source
from bertcli.text.streams import Progress

Report = Callable[[str], None]
"""Takes a line for the user."""


@contextmanager
def progress_display(
    doing: str, sources: Sequence[Source], report: Report, start: int = 0
) -> Iterator[Progress]:
    """Gives the function that counts the bytes read from disk; `start`: files before it count as read."""
    sizes = [source.path.stat().st_size for source in sources]
    done, total, last_line = sum(sizes[:start]), sum(sizes), time.monotonic()

    def advance(num_bytes: int) -> None:
        nonlocal done, last_line
        done += num_bytes
        if bar is not None:
            bar.update(num_bytes)
        elif time.monotonic() - last_line >= BETWEEN_LINES:
            last_line = time.monotonic()
            report(line())

    bar, line = None, lambda: f"{doing}: {done / max(1, total):.0%} of {total / 1e6:,.0f} MB"
    if sys.stderr.isatty():
        bar = tqdm(
            desc=doing,
            total=total,
            initial=done,
            unit="B",
            unit_scale=True,
            leave=False,
            file=raw_stream(sys.stderr),
        )
    with nullcontext() if bar is None else bar, working(line if bar is None else lambda: ""):
        yield advance
