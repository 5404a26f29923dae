"""One message for an error of a system that has run out of memory, threads, files or shared memory.

An error is judged by its type and by the system's error number. Libraries in other languages raise errors
without a number, but with the system's own words for it ("Cannot allocate memory"); these are looked for too.
"""

import errno
import os
import re
import sys
import traceback
from collections.abc import Iterator

from bertcli.system.errors import DISK_FULL

_ADVICE = {
    "no shared memory": "processes can share no memory here: /dev/shm is missing or cannot be used; mount "
    "it, or draw batches without loader processes: data.workers: 0",
    "full shared memory": "the shared memory of processes (/dev/shm) is full: free it, make it larger "
    "(docker run --shm-size=1g), or draw batches without loader processes: data.workers: 0",
    "memory": "not enough memory ({}): close other programs, raise the limit (ulimit -v, or that of the job "
    "or container), or use less: a smaller training.micro_batch_size or model, or fewer processes "
    "(data.workers: 0)",
    "threads": "no more threads or processes can be started ({}): raise the limit (ulimit -u, ulimit -v), or "
    "set OMP_NUM_THREADS=1 and data.workers: 0",
    "files": "no more files can be opened ({}): raise the limit (ulimit -n), or set data.workers: 0",
    "loader": "a loader process died, perhaps because memory ran out, or shared memory (/dev/shm; docker run "
    "--shm-size=1g). What was saved is intact: continue with --resume; data.workers: 0 uses no loader "
    "processes",
}
"""What ran out -> the message; `{}` is the error's own. Of several causes, the first of these is told."""
_SHARED_NUMBERS = dict.fromkeys(DISK_FULL, "full shared memory") | dict.fromkeys(
    (errno.ENOENT, errno.ENOSYS, errno.EACCES, errno.EPERM), "no shared memory"
)
"""What these numbers mean if shared memory was asked for."""
_SHARED_NAME = "</torch_"
"""How torch names a piece of shared memory in its errors."""
_NUMBERS = {errno.ENOMEM: "memory", errno.EAGAIN: "threads", errno.EMFILE: "files", errno.ENFILE: "files"}
_WORDS = {
    "failed to map segment": "memory",  # glibc, of a library that is loaded
    "bad_alloc": "memory",  # C++
    "could not create a primitive": "memory",  # oneDNN
    "CUBLAS_STATUS_ALLOC_FAILED": "memory",
    "can't start new thread": "threads",  # Python
    "Bus error": "full shared memory",  # torch, of a loader process
    "DataLoader worker (pid": "loader",
}
"""Words of errors that have neither a type of their own nor the system's words."""
_CUDA_NO_MEMORY = 2


def describe_exhausted(error: BaseException) -> str | None:
    """A message with what ran out and what to do; None if the error has another cause."""
    causes = {what: each for each in _chain(error) if (what := _ran_out(each)) is not None}
    for what, advice in _ADVICE.items():
        if what in causes:
            return advice.format(_short(causes[what]))
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
        each = each.__cause__ or (None if each.__suppress_context__ else each.__context__)


def _ran_out(error: BaseException) -> str | None:
    """The key of `_ADVICE` for one error, whatever caused it."""
    if isinstance(error, MemoryError) or _is_of_gpu(error):
        return "memory"
    if isinstance(error, OSError) and error.errno in _NUMBERS:
        return _NUMBERS[error.errno]
    if isinstance(error, SystemError) and _is_memory_limited():
        return "memory"  # Python's own code failed without saying why; an allocation is the likely reason
    text = str(error)
    for number, what in (_NUMBERS | (_SHARED_NUMBERS if _SHARED_NAME in text else {})).items():
        if os.strerror(number) in text:
            return what
    for words, what in _WORDS.items():
        if words in text:
            return what
    if not _is_of_multiprocessing(error):
        return None
    if isinstance(error, OSError) and error.filename is None and error.errno in _SHARED_NUMBERS:
        return _SHARED_NUMBERS[error.errno]
    return "loader" if isinstance(error, ConnectionResetError | EOFError) else None


def _is_of_gpu(error: BaseException) -> bool:
    """True for errors of torch by which a GPU's memory is full. Without torch, there are none."""
    torch = sys.modules.get("torch")
    full = getattr(torch, "OutOfMemoryError", ())
    other = getattr(torch, "AcceleratorError", ())
    return isinstance(error, full) or (
        isinstance(error, other) and getattr(error, "error_code", None) == _CUDA_NO_MEMORY
    )


def _is_memory_limited() -> bool:
    """True if the system refuses memory to this process beyond a limit; without one, it ends processes."""
    try:
        import resource
    except ModuleNotFoundError:  # Windows
        return False
    limits = (resource.RLIMIT_AS, resource.RLIMIT_DATA)
    return any(resource.getrlimit(limit)[0] != resource.RLIM_INFINITY for limit in limits)


def _is_of_multiprocessing(error: BaseException) -> bool:
    """True if the error was raised in `multiprocessing`, which keeps shared data in /dev/shm."""
    frames = traceback.extract_tb(error.__traceback__)
    return any("multiprocessing" in frame.filename for frame in frames)


def _short(error: BaseException) -> str:
    """The first line of an error's message, without the prefix of torch."""
    lines = [re.sub(r"^\[.*?\]\s*(err == 0\.|\.)?\s*", "", line.strip()) for line in str(error).splitlines()]
    return next(filter(None, lines), type(error).__name__)[:200].rstrip(".")
