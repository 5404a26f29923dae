"""Locks and errors of the disk."""

from __future__ import annotations

import errno
import multiprocessing
import os
import re
import subprocess
import sys
import time
from pathlib import Path

import pytest

from bertcli.system.errors import UserError
from bertcli.system.files import disk_errors, is_locked, lock_file, sync, write_text

HOLD = """
import sys, time
from pathlib import Path
from bertcli.system.files import lock_file
with lock_file(Path(sys.argv[1]), "in use by", "wait"):
    print("held", flush=True)
    time.sleep(60)
"""
LOOK = """
import sys
from pathlib import Path
from bertcli.system.files import is_locked
print(is_locked(Path(sys.argv[1])), flush=True)
while True:
    is_locked(Path(sys.argv[1]))
"""


def hold(path: Path) -> None:
    with lock_file(path, "in use by", "wait"):
        pass


def test_a_lock_names_its_holder_and_ends_with_it(tmp_path: Path) -> None:
    path = tmp_path / ".lock"
    holder = subprocess.Popen([sys.executable, "-c", HOLD, str(path)], stdout=subprocess.PIPE, text=True)
    try:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "held\n"
        with pytest.raises(UserError, match=rf"^in use by process {holder.pid} on .*, since 20.*; wait$"):
            hold(path)
    finally:
        holder.kill()
        holder.communicate()
    hold(path)
    hold(path)


def test_a_forked_process_does_not_hold_the_lock_of_its_parent(tmp_path: Path) -> None:
    path, child = (
        tmp_path / ".lock",
        multiprocessing.get_context("fork").Process(target=time.sleep, args=(60,)),
    )
    with lock_file(path, "in use by", "wait"):
        child.start()
        with pytest.raises(UserError, match=f"in use by process {os.getpid()} on"):
            hold(path)
    try:
        deadline = time.monotonic() + 30
        while True:  # the child lets go in its first moments
            try:
                hold(path)
                break
            except UserError:
                assert time.monotonic() < deadline
                time.sleep(0.01)
        assert child.is_alive()
    finally:
        child.kill()
        child.join()


@pytest.mark.parametrize("number", [errno.ENOLCK, errno.EBADF, errno.EINVAL, errno.ENOSYS])
def test_a_file_system_without_locks_and_fsync_is_used_without(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    def refuse(*_: object) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr("fcntl.flock", refuse)
    hold(tmp_path / ".lock")
    monkeypatch.setattr("os.fsync", refuse)
    if number in (errno.EINVAL, errno.ENOSYS):
        write_text(tmp_path / "text", "a")
        sync(tmp_path)
    else:  # an error of the disk
        with pytest.raises(OSError, match=re.escape(os.strerror(number))):
            write_text(tmp_path / "text", "a")


@pytest.mark.parametrize(
    ("error", "message"),
    [
        (
            OSError(errno.ENOSPC, "?"),
            "writing: no space left on device; .* intact. Free some space and continue",
        ),
        (
            OSError(errno.EFBIG, "?"),
            r"writing: file too large; .* Raise the limit .*\(ulimit -f\) and continue",
        ),
        (
            Exception("I/O error: No space left on device (os error 28)"),
            "writing: no space left on device; .*",
        ),
        (
            OSError(errno.EROFS, "?"),
            "writing: read-only file system; choose an output_dir that can be written",
        ),
        (OSError(errno.EIO, "?"), "writing: input/output error; choose"),
    ],
)
def test_what_the_disk_refuses_is_a_message(error: Exception, message: str) -> None:
    with pytest.raises(UserError, match=f"^{message}"), disk_errors("writing"):
        raise error


def test_other_errors_are_no_message() -> None:
    with pytest.raises(ZeroDivisionError), disk_errors("writing"):
        raise ZeroDivisionError
    with pytest.raises(UserError, match=r"^mine \(os error 28\)$"), disk_errors("writing"):
        raise UserError("mine (os error 28)")


def test_a_look_at_a_lock_refuses_nobody(tmp_path: Path) -> None:
    path = tmp_path / ".lock"
    hold(path)
    looks = [
        subprocess.Popen([sys.executable, "-c", LOOK, str(path)], stdout=subprocess.PIPE) for _ in range(2)
    ]
    try:
        for look in looks:
            assert look.stdout is not None
            assert look.stdout.readline() == b"False\n"
        for _ in range(300):
            hold(path)  # which raises if it is refused
            assert not is_locked(path)
    finally:
        for look in looks:
            look.kill()
            look.communicate()


def test_a_lock_is_seen_from_outside_only_while_it_is_held(tmp_path: Path) -> None:
    path = tmp_path / ".lock"
    assert not is_locked(path)
    with lock_file(path, "in use by", "wait"):
        assert is_locked(path)
    assert path.exists()
    assert not is_locked(path)
    path.write_text("mine")
    assert not is_locked(path)
