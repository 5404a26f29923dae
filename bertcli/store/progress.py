"""How much of the corpus has been read: a bar on a terminal, now and then a line elsewhere."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Sequence
from types import TracebackType
from typing import Self

from tqdm import tqdm

from bertcli.terminal import raw_stream
from bertcli.text.sources import Source

Report = Callable[[str], None]
"""Takes a line for the user."""

SECONDS_BETWEEN_LINES = 10.0


class ProgressDisplay:
    """Counts bytes read from the disk. A context manager, so that a bar is closed."""

    def __init__(self, doing: str, sources: Sequence[Source], report: Report, start: int = 0):
        """`start`: the file that reading starts with; those before it count as read."""
        sizes = [source.path.stat().st_size for source in sources]
        self._doing, self._report, self._total = doing, report, sum(sizes)
        self._done, self._last_line = sum(sizes[:start]), time.monotonic()
        self._bar = (
            tqdm(
                desc=doing,
                total=self._total,
                initial=self._done,
                unit="B",
                unit_scale=True,
                leave=False,
                file=raw_stream(sys.stderr),
            )
            if sys.stderr.isatty()
            else None
        )

    def advance(self, num_bytes: int) -> None:
        """So many bytes more have been read."""
        self._done += num_bytes
        if self._bar is not None:
            self._bar.update(num_bytes)
        elif time.monotonic() - self._last_line >= SECONDS_BETWEEN_LINES:
            self._last_line = time.monotonic()
            self._report(
                f"{self._doing}: {self._done / max(1, self._total):.0%} of {self._total / 1e6:,.0f} MB"
            )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._bar is not None:
            self._bar.close()
