"""One message for an error of a system that has run out of memory, threads or shared memory, or of a file."""

from __future__ import annotations

import errno
import re
import traceback
from collections.abc import Iterator

from bertcli.system.errors import DISK_FULL

_NO_MEMORY = re.compile(
    r"can(no|')t allocate memory|failed to map segment|bad_alloc|out of memory|os error 12\b"
    r"|DefaultCPUAllocator|insufficient memory|failed to allocate|failed to create mmap|unable to mmap"
    r"|could not create a primitive"  # oneDNN
    r"|SystemError: .*without (exception set|setting an exception)",  # Python itself
    re.IGNORECASE,
)
_NO_THREADS = re.compile(
    r"can't start new thread|thread creation failed|Resource temporarily unavailable|ThreadPoolBuildError"
    r"|code: 11\b|os error 11\b",
    re.IGNORECASE,
)
_NO_SHARED_MEMORY = re.compile(
    r"unable to (write to|resize|mmap \d+ bytes from|allocate|open) .*(torch_|/dev/shm|shared memory)"
    r"|(out of|insufficient) shared memory|Bus error",
    re.IGNORECASE,
)
_CANNOT_SHARE = re.compile(
    r"unable to open .*(torch_|/dev/shm|shared memory).*(no such file|not permitted|denied|not implemented)",
    re.IGNORECASE,
)
_LOADER_DIED = re.compile(r"DataLoader worker \(pid.*(is killed by|exited unexpectedly)", re.DOTALL)
_MAKE_ROOM = (
    "close other programs, raise the limit (ulimit -v, or that of the job or container), or use less: a "
    "smaller training.micro_batch_size or model, or fewer processes (data.workers: 0)"
)
_SHARED = (
    "the shared memory of processes (/dev/shm) is full: free it, make it larger (docker run --shm-size=1g), "
    "or draw batches without loader processes: data.workers: 0"
)

_NONE_SHARED = (errno.ENOENT, errno.ENOSYS, errno.EACCES, errno.EPERM)
_NOT_SHARED = (
    "processes can share no memory here: /dev/shm is missing or cannot be used; mount it, or draw "
    "batches without loader processes: data.workers: 0"
)


def describe_exhausted(error: BaseException) -> str | None:
    """A message with what ran out and what to do; None if the error has another cause."""
    for each in _chain(error):
        text = f"{type(each).__name__}: {each}"
        number = each.errno if isinstance(each, OSError) else None
        if _CANNOT_SHARE.search(text):
            return _NOT_SHARED
        if _NO_SHARED_MEMORY.search(text) or (number in DISK_FULL and _shares_memory(each)):
            return _SHARED
        if number in _NONE_SHARED and _shares_memory(each) and not getattr(each, "filename", None):
            return _NOT_SHARED
        if isinstance(each, MemoryError) or number == errno.ENOMEM or _NO_MEMORY.search(text):
            return f"not enough memory ({_short(each)}): {_MAKE_ROOM}"
        if number == errno.EAGAIN or _NO_THREADS.search(text):
            return (
                f"no more threads or processes can be started ({_short(each)}): raise the limit (ulimit -u, "
                "ulimit -v), or set OMP_NUM_THREADS=1 and data.workers: 0"
            )
        is_cut_off = isinstance(each, ConnectionResetError | EOFError) and _shares_memory(each)
        if is_cut_off or _LOADER_DIED.search(text):
            return (
                "a loader process died, perhaps because memory ran out, or shared memory (/dev/shm; docker "
                "run --shm-size=1g). What was saved is intact: continue with --resume; data.workers: 0 uses "
                "no loader processes"
            )
    return None


def describe_os_error(error: BaseException) -> str | None:
    """A message for an error of a named file, or of a full disk; None if it is another error."""
    if not isinstance(error, OSError):
        return None
    reason = (error.strerror or "cannot be used").lower()
    if error.filename is not None:
        return f"{error.filename}: {reason}"
    if error.errno in DISK_FULL:
        return f"a file could not be written: {reason}; free some space"
    return None


def _chain(error: BaseException) -> Iterator[BaseException]:
    """An error, and the errors that caused it."""
    seen: set[int] = set()
    each: BaseException | None = error
    while each is not None and id(each) not in seen:
        seen.add(id(each))
        yield each
        each = each.__cause__ or each.__context__


def _shares_memory(error: BaseException) -> bool:
    """True if the error was raised in `multiprocessing`, which keeps shared data in /dev/shm."""
    frames = traceback.extract_tb(error.__traceback__)
    return any("multiprocessing" in frame.filename for frame in frames)


def _short(error: BaseException) -> str:
    """The most specific line of an error's message, without the prefix of torch."""
    lines = [re.sub(r"^\[.*?\]\s*(\.\s*)?", "", line.strip()) for line in str(error).splitlines()]
    specific = [line for line in lines if _NO_MEMORY.search(line) or _NO_THREADS.search(line)]
    return next((line for line in specific + lines if line), type(error).__name__)[:200].rstrip(".")
