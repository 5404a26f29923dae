"""Errors of a system that has no more to give, in the words of those who raise them."""

from __future__ import annotations

import errno
import multiprocessing
import os
import re
import resource
from multiprocessing import synchronize

import pytest
import torch

from bertcli.system.exhausted import describe_exhausted

TORCH = (
    "[enforce fail at alloc_cpu.cpp:117] err == 0. DefaultCPUAllocator: can't allocate memory: you tried to "
    "allocate 1099511627776 bytes. Error code 12 (Cannot allocate memory)"
)
RAYON = (
    "The global thread pool has not been initialized.: ThreadPoolBuildError { kind: IOError(Os { code: 11, "
    'kind: WouldBlock, message: "Resource temporarily unavailable" }) }'
)


class FullGpu(torch.AcceleratorError):
    """The error of torch for a call of CUDA that failed; 2 is `cudaErrorMemoryAllocation`."""

    error_code = 2


@pytest.mark.parametrize(
    ("error", "message"),
    [
        (MemoryError(), "not enough memory (MemoryError): close other programs"),
        (MemoryError("std::bad_alloc"), "not enough memory (std::bad_alloc)"),
        (torch.OutOfMemoryError("CUDA out of memory. Tried ..."), "not enough memory (CUDA out of memory"),
        (
            FullGpu("CUDA error: out of memory\nCUDA kernel errors ..."),
            "not enough memory (CUDA error: out of",
        ),
        (RuntimeError(TORCH), "not enough memory (DefaultCPUAllocator: can't allocate memory: you tried"),
        (OSError(errno.ENOMEM, "in any language"), "not enough memory ("),
        (ImportError("libtorch_cpu.so: failed to map segment from shared object"), "not enough memory (libt"),
        (RuntimeError("can't start new thread"), "no more threads or processes can be started"),
        (BlockingIOError(errno.EAGAIN, "in any language"), "no more threads or processes"),
        (Exception(RAYON), "no more threads or processes can be started (The global thread pool"),
        (
            OSError(errno.EMFILE, "in any language", "a.txt"),
            "no more files can be opened (in any language: 'a",
        ),
        (
            RuntimeError("unable to open shared memory object </torch_1> in mode: Too many open files (24)"),
            "no more files can be opened (unable to open shared memory object",
        ),
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


@pytest.mark.parametrize("limit", [resource.RLIMIT_AS, resource.RLIMIT_DATA])
def test_python_failing_without_a_reason_means_memory_under_a_limit(
    monkeypatch: pytest.MonkeyPatch, limit: int
) -> None:
    error = SystemError("<function _find_and_load> returned NULL without setting an exception")
    limits = {resource.RLIMIT_AS: resource.RLIM_INFINITY, resource.RLIMIT_DATA: resource.RLIM_INFINITY}
    monkeypatch.setattr(resource, "getrlimit", lambda name: (limits[name], resource.RLIM_INFINITY))
    assert describe_exhausted(error) is None
    limits[limit] = 1 << 30
    assert "not enough memory (<function _find_and_load> returned NULL" in (describe_exhausted(error) or "")


def test_what_an_error_came_from_is_seen() -> None:
    error = ImportError("numpy could not be imported")
    error.__cause__ = MemoryError()
    assert "not enough memory" in (describe_exhausted(error) or "")


def test_an_error_that_was_handled_is_no_cause() -> None:
    error = ValueError("shape mismatch")
    error.__context__ = BlockingIOError(errno.EAGAIN, "a pipe was empty")
    error.__suppress_context__ = True  # raise ... from None
    assert describe_exhausted(error) is None


def test_of_several_causes_the_nearest_to_the_origin_is_said() -> None:
    died = RuntimeError("DataLoader worker (pid(s) 12) exited unexpectedly")
    died.__cause__ = MemoryError("std::bad_alloc")
    assert "not enough memory (std::bad_alloc)" in (describe_exhausted(died) or "")


@pytest.mark.parametrize(
    "error",
    [
        ValueError("no"),
        RuntimeError("shape mismatch"),
        OSError(errno.ENOSPC, "No space left on device"),
        FileNotFoundError(errno.ENOENT, "No such file or directory", "/home/me/torch_models"),
        RuntimeError(
            "unable to open file </home/me/torch_models> in read-only mode: No such file or directory"
        ),
    ],
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
