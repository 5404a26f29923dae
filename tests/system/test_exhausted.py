"""Errors of a system that has no more to give, in the words of those who raise them."""

from __future__ import annotations

import errno
import multiprocessing
import os
import re
import shutil
import subprocess
import sys
from multiprocessing import synchronize
from pathlib import Path

import pytest

from bertcli.system.exhausted import describe_exhausted
from tests.small_runs import small_config, write_config, write_corpus

TORCH = (
    "[enforce fail at alloc_cpu.cpp:117] . DefaultCPUAllocator: can't allocate memory: you tried to allocate "
    "1099511627776 bytes. Error code 12 (Cannot allocate memory)"
)


@pytest.mark.parametrize(
    ("error", "message"),
    [
        (MemoryError(), "not enough memory (MemoryError): close other programs"),
        (MemoryError("std::bad_alloc"), "not enough memory (std::bad_alloc)"),
        (SystemError("error return without exception set"), "not enough memory (error return without"),
        (
            SystemError("<function _find_and_load> returned NULL without setting an exception"),
            "not enough memory (<function _find_and_load> returned NULL",
        ),
        (RuntimeError(TORCH), "not enough memory (DefaultCPUAllocator: can't allocate memory: you tried"),
        (OSError(errno.ENOMEM, "Cannot allocate memory"), "not enough memory ("),
        (ImportError("libtorch_cpu.so: failed to map segment from shared object"), "not enough memory (libt"),
        (RuntimeError("can't start new thread"), "no more threads or processes can be started"),
        (BlockingIOError(errno.EAGAIN, "Resource temporarily unavailable"), "no more threads or processes"),
        (
            RuntimeError("DataLoader worker (pid 1) is killed by signal: Bus error. It is possible that ..."),
            "the shared memory of processes (/dev/shm) is full: free it",
        ),
        (
            RuntimeError("unable to write to file </torch_12_3_4>: No space left on device (28)"),
            "the shared memory of processes",
        ),
        (
            RuntimeError("unable to open shared memory object </torch_1_2_3>: No such file or directory (2)"),
            "processes can share no memory here: /dev/shm is missing",
        ),
        (RuntimeError("DataLoader worker (pid(s) 12) exited unexpectedly"), "a loader process died"),
    ],
)
def test_what_ran_out_is_said(error: BaseException, message: str) -> None:
    said = describe_exhausted(error)
    assert said is not None
    assert said.startswith(message)
    assert "\n" not in said


def test_what_an_error_came_from_is_seen() -> None:
    error = ImportError("numpy could not be imported")
    error.__cause__ = MemoryError()
    assert "not enough memory" in (describe_exhausted(error) or "")


@pytest.mark.parametrize(
    "error", [ValueError("no"), OSError(errno.ENOSPC, "No space left"), RuntimeError("shape mismatch")]
)
def test_other_errors_are_not_explained_away(error: BaseException) -> None:
    assert describe_exhausted(error) is None


@pytest.mark.parametrize(
    ("number", "said"),
    [
        (errno.ENOSPC, "the shared memory of processes (/dev/shm) is full"),
        (errno.ENOENT, "/dev/shm is missing or cannot be used; mount it, or draw batches without loader"),
        (errno.ENOSYS, "/dev/shm is missing or cannot be used"),
    ],
)
def test_shared_memory_that_is_full_or_missing_is_named(
    monkeypatch: pytest.MonkeyPatch, number: int, said: str
) -> None:
    def refuse(*_: object) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(synchronize._multiprocessing, "SemLock", refuse)  # pyright: ignore
    with pytest.raises(OSError, match=re.escape(os.strerror(number))) as caught:
        multiprocessing.get_context("spawn").Lock()
    assert said in (describe_exhausted(caught.value) or "")


def can_mount() -> bool:
    if not shutil.which("unshare"):
        return False
    command = ["unshare", "-m", "mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", "/dev/shm"]
    return subprocess.run(command, capture_output=True, check=False).returncode == 0


@pytest.mark.skipif(not can_mount(), reason="no /dev/shm of its own may be mounted")
@pytest.mark.parametrize("fill", ["head -c 300000 /dev/zero > /dev/shm/full;", ""])
def test_full_shared_memory_ends_a_run_with_a_message(tmp_path: Path, fill: str) -> None:
    """Where there is some, but not enough, nothing waits for a batch that never comes."""
    corpus = write_corpus(tmp_path / "corpus.txt")
    config = write_config(tmp_path / "c.yaml", small_config(corpus, tmp_path / "run", data={"workers": 1}))
    bertcli = f"{sys.executable} -m bertcli bench stream {config} --batches 30"
    script = f"mount -t tmpfs -o size=300k tmpfs /dev/shm; {fill} exec {bertcli}"
    result = subprocess.run(
        ["unshare", "-m", "sh", "-c", script], capture_output=True, text=True, timeout=120, check=False
    )
    assert result.returncode == 2
    last = result.stderr.splitlines()[-1]
    assert last.startswith("error: ")
    assert "/dev/shm" in last
    assert "standard output" not in result.stderr
    assert "Traceback" not in result.stderr
