"""Work distributed over processes, with results in order; the socket and the files that a process opens."""

import contextlib
import multiprocessing
import os
import signal
import socket
import sys
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import AbstractContextManager, contextmanager
from typing import Any, TypeVar

from bertcli.system.errors import UserError
from bertcli.system.signals import leave_to_parent

Piece = TypeVar("Piece")
Result = TypeVar("Result")

_IN_FLIGHT = 3
"""Pieces in work per process: enough that no process waits, few enough that memory stays flat."""


class ProcessDied(UserError):
    """A process died, perhaps because memory ran out."""


def in_processes(
    pieces: Iterable[Piece],
    arguments: Callable[[Piece], tuple[Any, ...]],
    make_worker: Callable[..., Callable[..., Result]],
    given: tuple[Any, ...],
    processes: int,
    died: str,
    most: int | None = None,
) -> Iterator[tuple[Piece, Result]]:
    """Each piece with its result, in the order of the pieces.

    The processes are spawned, not forked, because this one may have threads.

    Args:
        arguments: piece -> the arguments that are sent to a worker.
        make_worker: called once in each process, with `given`; returns the function of those arguments.
        processes: their number; 0: this process alone does the work.
        died: the message of the `ProcessDied` that is raised where a process dies.
        most: pieces in work at the same time; None: a few for each process.

    Ctrl-C or an error ends the processes, whatever they compute.
    """
    if not processes:
        worker = make_worker(*given)
        yield from ((piece, worker(*arguments(piece))) for piece in pieces)
        return
    context = multiprocessing.get_context("spawn")
    in_flight: deque[tuple[Piece, Future[Result]]] = deque()
    most = most or _IN_FLIGHT * processes
    with safe_path():
        pool = ProcessPoolExecutor(processes, context, _start_worker, (make_worker, given))
        try:
            for piece in pieces:
                sent = arguments(piece)
                with _no_ctrl_c():
                    in_flight.append((piece, pool.submit(_work, *sent)))
                if len(in_flight) > most:
                    done, future = in_flight.popleft()
                    yield done, future.result()
            while in_flight:
                done, future = in_flight.popleft()
                yield done, future.result()
        except BrokenProcessPool:
            _end_sending(pool)
            raise ProcessDied(died) from None
        except BaseException:
            for process in list((pool._processes or {}).values()):
                process.terminate()
            _end_sending(pool)
            raise
        finally:
            pool.shutdown(wait=True, cancel_futures=True)


@contextmanager
def _no_ctrl_c() -> Iterator[None]:
    """Delay Ctrl-C, also in a process that starts now. Ctrl-C would interrupt the imports of that process
    with a traceback, before it can leave the signal to its parent."""
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _end_sending(pool: ProcessPoolExecutor) -> None:
    """Close the pipe of a broken pool, where Python does not.

    Python before 3.11.5 waits for ever for its own thread, which sends a piece that no process will read:
    https://github.com/python/cpython/issues/94777
    """
    if sys.version_info < (3, 11, 5):
        pool._call_queue._reader.close()  # pyright: ignore[reportAttributeAccessIssue]


def safe_path() -> AbstractContextManager[None]:
    """Keep new Python processes from importing files of the current folder, as long as the block runs.

    A pool starts one process when it is made, for what it shares, and the others when they have work.
    """
    return variable("PYTHONSAFEPATH", "1")


@contextmanager
def variable(name: str, value: str) -> Iterator[None]:
    """Set a variable of the environment, as long as the block runs."""
    before = os.environ.get(name)
    os.environ[name] = value
    try:
        yield
    finally:
        os.environ.pop(name, None)
        if before is not None:
            os.environ[name] = before


_worker: Callable[..., Any]


def _start_worker(make_worker: Callable[..., Callable[..., Any]], given: tuple[Any, ...]) -> None:
    global _worker
    leave_to_parent()
    os.environ["TOKENIZERS_PARALLELISM"] = "false"
    threading.Thread(target=_die_with_parent, daemon=True).start()
    _worker = make_worker(*given)


def _die_with_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


def _work(*arguments: Any) -> Any:
    return _worker(*arguments)


def bound_socket(host: str, port: int) -> socket.socket:
    """A socket at an address, which nobody can connect to before it listens; `port` 0: a free one.

    Raises `UserError` if there is no such address, or another program listens at it.
    """
    try:
        family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][0]
        found = socket.socket(family, socket.SOCK_STREAM)
        if os.name == "posix":  # an address that was just given up can be taken at once
            found.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            found.bind((host, port))
        except OSError:
            found.close()
            raise
    except (OSError, OverflowError, UnicodeError) as error:
        reason = str(getattr(error, "strerror", None) or error).lower()
        raise UserError(f"{host}:{port}: {reason}; name another address: --host, --port") from None
    return found


def raise_file_limit() -> None:
    """Allow this process as many open files and connections as the system does."""
    with contextlib.suppress(ImportError, ValueError, OSError):
        import resource

        _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
