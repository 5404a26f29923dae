"""Atomic writing: a reader, or a power cut, sees the old state or the new one. Locks, hashes, disk errors."""

import errno
import hashlib
import io
import mmap
import os
import re
import secrets
import socket
import stat
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, Literal, TextIO

from filelock import lock_descriptor

from bertcli.system.errors import DISK_FULL, UserError
from bertcli.system.remote import InputPath, RemotePath


@contextmanager
def disk_errors(doing: str, if_full: str = "", if_refused: str = "") -> Iterator[None]:
    """Turn a full disk, or a place that may not be written, into a `UserError`.

    `doing`: what failed; `if_full`, `if_refused`: what to do next (the defaults are for runs).
    """
    try:
        yield
    except UserError:
        raise
    except Exception as error:
        number = _error_number(error)
        reason = os.strerror(number).lower()
        if number in DISK_FULL:
            mend = (
                "Raise the limit of a file's size (ulimit -f)" if number == errno.EFBIG else "Free some space"
            )
            raise UserError(
                f"{doing}: {reason}; what was saved before is intact. {mend} "
                + (if_full or "and continue with --resume")
            ) from None
        if number in (errno.EACCES, errno.EPERM, errno.EROFS, errno.ENOTDIR, errno.EEXIST, errno.EIO):
            raise UserError(
                f"{doing}: {reason}; " + (if_refused or "choose an output_dir that can be written")
            ) from None
        raise


def _error_number(error: Exception) -> int:
    """The system's number of an error, or 0; Rust libraries give it in the text of their own error."""
    if isinstance(error, OSError) and error.errno:
        return error.errno
    found = re.search(r"\(os error (\d+)\)", str(error))
    return int(found[1]) if found else 0


_LOCK = re.compile(rb"(process \d+ on [^\n]*, since \d{4}-\d\d-\d\d \d\d:\d\d:\d\d)?")
_LOOK = 0.5
"""Seconds to wait for a lock: `is_locked` holds it for microseconds while it looks, a run to its end."""
_OF_SHELLS = re.compile(r"/dev/(null|stdin|fd/\d+)|/proc/(self|\d+)/fd/\d+")
_CANNOT = (errno.ENOSYS, errno.EOPNOTSUPP, errno.ENOTSUP)
_held: set[TextIO] = set()
"""Locks of this process. A forked process closes them, because loader processes outlive a killed parent."""


def _close_held() -> None:
    for file in _held:
        file.close()


if hasattr(os, "register_at_fork"):  # not on Windows, which has no fork
    os.register_at_fork(after_in_child=_close_held)


def is_lock(path: Path) -> bool:
    """True if bertcli made this lock, held or not; it is empty if its process was killed at the start."""
    try:
        return stat.S_ISREG(path.lstat().st_mode) and bool(_LOCK.fullmatch(path.read_bytes()))
    except OSError:
        return False


def _open_lock(path: Path, instead: str) -> TextIO:
    if os.path.lexists(path) and not is_lock(path):
        raise UserError(f"{path}: is not a lock of bertcli's, and is left as it is; {instead}")
    flags = os.O_RDWR | os.O_CREAT | os.O_APPEND | getattr(os, "O_NOFOLLOW", 0)
    descriptor = os.open(path, flags, 0o666)
    return open(descriptor, "a+", encoding="utf-8")


def _take(file: IO[Any], patience: float = _LOOK) -> bool:
    """True if the lock is this file's now. It is tried for `patience` seconds, by default because `is_locked`
    may hold it."""
    last = time.monotonic() + patience
    while not lock_descriptor(file.fileno(), blocking=False):
        if time.monotonic() > last:
            return False
        time.sleep(_LOOK / 50)
    return True


def _is_at(file: IO[Any], path: Path) -> bool:
    """True if the file still has this path; its last holder may have removed or renamed it."""
    try:
        return os.path.samestat(os.fstat(file.fileno()), path.lstat())
    except FileNotFoundError:
        return False


@contextmanager
def lock_file(path: Path, refusal: str, instead: str, patience: float = _LOOK) -> Iterator[None]:
    """Hold the lock `path`, created if missing; a lock ends with its process.

    A file system without locks is accepted: nothing is held there. Another process is waited for as long as
    `patience`, in seconds.

    Raises:
        UserError: another process holds it (the message: `refusal`, the holder, what to do `instead`), or the
            file is not a lock.
        OSError: the file may not be written.
    """
    with _open_lock(path, instead) as file:
        try:
            is_free = _take(file, patience) and _is_at(file, path)
        except OSError as error:
            if error.errno not in (errno.ENOLCK, errno.EBADF, errno.EINVAL, *_CANNOT):
                raise
            is_free = True
        if not is_free:
            file.seek(0)
            raise UserError(f"{refusal} {file.read() or 'another process'}; {instead}")
        file.truncate(0)
        file.write(f"process {os.getpid()} on {socket.gethostname()}, since {time.strftime('%F %T')}")
        file.flush()
        _held.add(file)
        try:
            yield
        finally:
            _held.discard(file)


def is_locked(path: Path) -> bool:
    """True if a process holds the lock `path` for longer than `_LOOK`. A free lock is taken for a moment."""
    if not is_lock(path):
        return False
    try:
        with open(path, "rb") as file:
            return not _take(file)
    except OSError:  # no permission, or a file system without locks
        return False


def write_text(path: Path, text: str) -> None:
    """Write a text file atomically. Raises `UserError` for a link, because writing would replace it."""
    if path.is_symlink():
        raise UserError(f"{path}: is a symbolic link; put a file in its place, or write elsewhere")
    partial = path.with_name(f".{path.name}.{secrets.token_hex(4)}.partial")
    try:
        with open(partial, "x", encoding="utf-8") as file:
            file.write(text)
            flush_to_disk(file)
        os.replace(partial, path)
    except BaseException:
        partial.unlink(missing_ok=True)
        raise


def refuse_special(path: Path) -> None:
    """Raise `UserError` for a pipe, a device or a socket: it may never end, and cannot be read twice."""
    if path.exists() and not path.is_file() and not path.is_dir():
        raise UserError(
            f"{path}: is no plain file, but a pipe, a device or a socket; put a file there, or name another"
        )


def open_input(path: InputPath) -> io.BufferedReader:
    """Open a file that a user names, or the pipe of a shell: `/dev/stdin`, or `/dev/fd/63` for `<(...)`.

    Raises the errors of `refuse_special`, and `OSError`; for a file elsewhere, those of `system.remote`. A
    named pipe is refused, because it may wait for a writer for ever.
    """
    if isinstance(path, RemotePath):
        return path.open()
    if not _OF_SHELLS.fullmatch(str(path)):
        refuse_special(path)
    return open(path, "rb")


def has_file(path: Path) -> bool:
    """True if a plain file is there, or a link to one. Raises the errors of `refuse_special`."""
    refuse_special(path)
    return path.is_file()


def open_plain(path: Path) -> io.BufferedReader:
    """Open a file of a model, a run or a store to read it.

    Raises the errors of `refuse_special`, without waiting for a writer, and `OSError`.
    """
    refuse_special(path)
    file = open(path, "rb", opener=_open_at_once)  # noqa: SIM115  (the caller closes it)
    if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):  # it was replaced meanwhile
        file.close()
        raise OSError(errno.ESTALE, os.strerror(errno.ESTALE), str(path))
    return file


def _open_at_once(path: str, flags: int) -> int:
    return os.open(path, flags | getattr(os, "O_NONBLOCK", 0))  # a pipe would wait for its writer


def plain_bytes(path: Path) -> bytes:
    """The content of a file. Raises the errors of `open_plain`."""
    with open_plain(path) as file:
        return file.read()


def plain_text(path: Path, errors: Literal["strict", "replace"] = "strict") -> str:
    """The content of a UTF-8 file, with its line ends as they are.

    Raises the errors of `open_plain`, and `UnicodeDecodeError`.
    """
    return plain_bytes(path).decode("utf-8", errors)


def is_cut(array: Any) -> bool:
    """True if the file of a memory-mapped array is shorter now than when it was mapped.

    Reading the lost part would end the process.
    """
    return isinstance(array.base, mmap.mmap) and array.base.size() < len(array.base)


def looked_in(path: Path) -> str:
    """The folder from which a relative path starts, for messages about a missing path."""
    return "" if path.is_absolute() else f" in {Path.cwd()}, where bertcli was called"


def file_hash(path: InputPath, kind: str = "sha256") -> str:
    """The hash of a file, hexadecimal; `kind`: its name in `hashlib`, always sha256 for a file elsewhere.

    The hash of a folder is that of the names and hashes of the files in it.
    """
    if isinstance(path, RemotePath):
        return path.sha256()
    if path.is_dir():
        files = sorted(each for each in path.iterdir() if each.is_file())
        listed = "".join(f"{file_hash(each, kind)} {each.name}\n" for each in files)
        return hashlib.new(kind, listed.encode(errors="surrogateescape")).hexdigest()
    with open_plain(path) as file:
        return hashlib.file_digest(file, kind).hexdigest()


def sync(path: Path) -> None:
    """Wait until a file or folder is on the disk, by `flush_to_disk`."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        _fsync(descriptor)
    finally:
        os.close(descriptor)


def flush_to_disk(file: IO[Any]) -> None:
    """Wait until all that was written to a file is on the disk, if the file system can tell."""
    file.flush()
    _fsync(file.fileno())


def _fsync(descriptor: int) -> None:
    try:
        os.fsync(descriptor)
    except OSError as error:
        if error.errno not in (errno.EINVAL, *_CANNOT):  # some network file systems and pipes of FUSE
            raise
