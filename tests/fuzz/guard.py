"""A function and hostile input -> what it makes of it, watched: no traceback, no hang, no harm.

"Good" is a result; "refused" an error in words, which the command line prints without a traceback. All else
fails the test: another exception, more than `SECONDS`, more than `MEMORY` of new memory, a write or a removal
outside of the folder it may use, a process started, a connection made.
"""

from __future__ import annotations

import faulthandler
import os
import resource
import signal
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

from bertcli.system.errors import UserError

SECONDS = 10.0
"""Of processor time."""
STUCK_SECONDS = 300.0
"""So long in one call of a library that hears no signal: the process ends, and shows where it was."""
MEMORY = 1 << 30
"""Bytes that the peak may grow by."""
outcomes: Counter[tuple[str, str]] = Counter()
"""(label, `good` or `refused`) -> how often, for `scripts/check/fuzz.py`."""

Result = TypeVar("Result")

_WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
_CHANGES: dict[str, tuple[tuple[int, ...], int | None]] = {
    "os.mkdir": ((0,), 2),
    "os.rename": ((0, 1), 2),
    "os.remove": ((0,), 1),
    "os.rmdir": ((0,), 1),
    "os.symlink": ((1,), 2),
    "os.link": ((1,), 3),
    "os.truncate": ((0,), None),
    "os.chmod": ((0,), 2),
    "os.utime": ((0,), 3),
    "shutil.rmtree": ((0,), None),
}
"""Audit event -> which arguments are paths that it changes, and which is the open folder that they start
from (-1: none), which was checked when it was opened."""
_NEVER = ("os.system", "os.exec", "os.posix_spawn", "subprocess.Popen", "socket.connect", "ctypes.dlopen")


class Harm(BaseException):
    """What no input may cause; not an `Exception`, so that nothing mistakes it for a refusal."""


_allowed: str | None = None


def _watch(event: str, arguments: tuple[Any, ...]) -> None:
    if _allowed is None:
        return
    if event in _NEVER:
        raise Harm(f"{event}{arguments}")
    if event == "open":
        path, _, flags = arguments
        if isinstance(flags, int) and flags & _WRITES:
            _check_place(event, path)
    elif event in _CHANGES:
        numbers, folder = _CHANGES[event]
        if folder is None or arguments[folder] == -1:
            for number in numbers:
                _check_place(event, arguments[number])


def _check_place(event: str, path: Any) -> None:
    if isinstance(path, int) or path is None:
        return
    place = os.path.realpath(os.fsdecode(path))
    if place != os.devnull and "__pycache__" not in place and not f"{place}/".startswith(f"{_allowed}/"):
        raise Harm(f"{event}: {place} is outside of {_allowed}")


sys.addaudithook(_watch)


@contextmanager
def scratch() -> Iterator[Path]:
    """A folder for one input: what is tried on it may write there and nowhere else."""
    with tempfile.TemporaryDirectory(prefix="bertcli-fuzz-") as folder:
        yield Path(folder).resolve()


def endure(label: str, folder: Path, function: Callable[[], Result]) -> Result | None:
    """What `function` gives; None where it refused. `folder` is where it may write."""
    global _allowed
    before = _peak_memory()
    _allowed = str(folder)
    previous = signal.signal(signal.SIGPROF, _too_long)
    signal.setitimer(signal.ITIMER_PROF, SECONDS)
    faulthandler.dump_traceback_later(STUCK_SECONDS, exit=True, file=sys.__stderr__ or sys.stderr)
    try:
        result = function()
        outcomes[label, "good"] += 1
    except (UserError, OSError) as error:  # the command line prints both
        if isinstance(error, OSError) and error.filename is None:
            raise
        outcomes[label, "refused"] += 1
        result = None
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        faulthandler.cancel_dump_traceback_later()
        signal.signal(signal.SIGPROF, previous)
        _allowed = None
    grown = _peak_memory() - before
    assert grown < MEMORY, f"took {grown / 1e6:,.0f} MB"
    return result


def _too_long(*_: object) -> None:
    raise Harm(f"took longer than {SECONDS:g} s")


def _peak_memory() -> int:
    """Bytes; on macOS `ru_maxrss` counts them, on Linux kibibytes."""
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak << 10
