"""Batches -> what an `Examiner` finds in each, on all cores, in order.

The workers are spawned, as those that tokenise (`store.encode`), and import no more than they need: a check
of 64 MB is over in seconds.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from typing import TYPE_CHECKING

from bertcli.checks.lines import Examination, Examined, Examiner
from bertcli.errors import UserError

if TYPE_CHECKING:
    from bertcli.checks.batches import Batch

_IN_FLIGHT = 3
"""Batches a process, so that none waits for the next."""


def examine(batches: Iterable[Batch], what: Examination, processes: int) -> Iterator[tuple[Batch, Examined]]:
    """Each batch with what is in it, in order; `processes`: 0 for this one alone.

    Raises `UserError` where a process dies.
    """
    if not processes:
        examiner = Examiner(what)
        yield from ((batch, examiner(batch.lines, batch.starts)) for batch in batches)
        return
    in_flight: deque[tuple[Batch, Future[Examined]]] = deque()
    pool = ProcessPoolExecutor(processes, multiprocessing.get_context("spawn"), _start_worker, (what,))
    try:
        for batch in batches:
            in_flight.append((batch, pool.submit(_examine_in_worker, batch.lines, batch.starts)))
            if len(in_flight) > _IN_FLIGHT * processes:
                done, future = in_flight.popleft()
                yield done, future.result()
        while in_flight:
            done, future = in_flight.popleft()
            yield done, future.result()
    except BrokenProcessPool:
        raise UserError(
            "a process that reads the corpus died, perhaps for want of memory; run the command again"
        ) from None
    finally:
        pool.shutdown(wait=True, cancel_futures=True)


_examiner: Examiner


def _start_worker(what: Examination) -> None:
    global _examiner
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent hears Ctrl-C, and stops the pool
    os.environ["TOKENIZERS_PARALLELISM"] = "false"
    threading.Thread(target=_die_with_parent, daemon=True).start()
    _examiner = Examiner(what)


def _die_with_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


def _examine_in_worker(lines: Sequence[str], starts: Sequence[int]) -> Examined:
    return _examiner(lines, starts)
