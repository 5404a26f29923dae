"""Writing so that a reader, or a power cut, sees the old state or the new one and nothing between."""

from __future__ import annotations

import errno
import hashlib
import os
import re
import secrets
import socket
import stat
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TextIO

from filelock import lock_descriptor

from bertcli.errors import DISK_FULL, UserError


@contextmanager
def disk_errors(doing: str, if_full: str = "", if_refused: str = "") -> Iterator[None]:
    """Turn a full disk, or a place that may not be written, into a `UserError`.

    `doing` says what could not be done; the other two what to do next (default: what fits a run).
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
                f"{doing}: {reason}; what was saved before is whole. {mend} "
                + (if_full or "and go on with --resume")
            ) from None
        if number in (errno.EACCES, errno.EPERM, errno.EROFS, errno.ENOTDIR, errno.EEXIST, errno.EIO):
            raise UserError(
                f"{doing}: {reason}; " + (if_refused or "choose an output_dir that can be written")
            ) from None
        raise


def _error_number(error: Exception) -> int:
    """The system's number of an error, which libraries in Rust give in the text of one of their own; or 0."""
    if isinstance(error, OSError) and error.errno:
        return error.errno
    found = re.search(r"\(os error (\d+)\)", str(error))
    return int(found[1]) if found else 0


_LOCK = re.compile(rb"(process \d+ on [^\n]*, since \d{4}-\d\d-\d\d \d\d:\d\d:\d\d)?")
_held: set[TextIO] = set()
"""Locks of this process. A process that it forks lets go of them: loader processes outlive a kill."""


def _let_go() -> None:
    for file in _held:
        file.close()


if hasattr(os, "register_at_fork"):  # not on Windows, where nothing forks
    os.register_at_fork(after_in_child=_let_go)


def is_lock(path: Path) -> bool:
    """Whether a file is a lock that bertcli made, held or not; an empty one is of a process just killed."""
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


@contextmanager
def lock_file(path: Path, refusal: str, instead: str) -> Iterator[None]:
    """Hold `path`, made where it is missing, against every other holder; a lock ends with its process.

    Where the file system knows no locks, nothing is held.

    Raises:
        UserError: it is held: `refusal`, who holds it, what to do `instead`; it is something else.
        OSError: the file may not be written.
    """
    with _open_lock(path, instead) as file:
        try:
            is_free = lock_descriptor(file.fileno(), blocking=False)
        except OSError as error:
            if error.errno not in (errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP):
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


def write_text(path: Path, text: str) -> None:
    """Write a text file atomically. Raises `UserError` for a link, which would be replaced."""
    if path.is_symlink():
        raise UserError(f"{path}: is a symbolic link; put a file in its place, or write elsewhere")
    partial = path.with_name(f".{path.name}.{secrets.token_hex(4)}.partial")
    try:
        with open(partial, "x", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        os.replace(partial, path)
    except BaseException:
        partial.unlink(missing_ok=True)
        raise


def looked_in(path: Path) -> str:
    """For a message on a path that leads nowhere: what a relative one is relative to."""
    return "" if path.is_absolute() else f" in {Path.cwd()}, where bertcli was called"


def file_hash(path: Path, kind: str = "sha256") -> str:
    """Of a file's bytes, hexadecimal; `kind` as `hashlib` names it."""
    with open(path, "rb") as file:
        return hashlib.file_digest(file, kind).hexdigest()


def sync(path: Path) -> None:
    """Wait until a file or folder is on the disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
