"""Processes of the command line that begin in a moment: forks of one process that has torch imported.

A process of its own spends seconds on imports before its first line. `Warm` is `subprocess.Popen` for
`python -m bertcli ...`. It asks a server, which waits with all modules imported, to fork a child with the
given arguments, environment, folder and streams. What a process does before and during its imports cannot be
seen in this way: tests of that use `subprocess.Popen`.
"""

from __future__ import annotations

import array
import atexit
import contextlib
import faulthandler
import fcntl
import gc
import importlib
import inspect
import json
import os
import pkgutil
import runpy
import selectors
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import termios
from functools import cache
from pathlib import Path
from typing import Any

import bertcli


class Warm(subprocess.Popen[str]):
    """`python -m bertcli ARGUMENTS` with the options of `subprocess.Popen`, but for `preexec_fn`.

    With `start_new_session`, a terminal that is its standard input is its controlling terminal.
    """

    def __init__(self, *arguments: object, **options: Any) -> None:
        everything: dict[str, Any] = {"text": True} | options
        super().__init__([str(argument) for argument in arguments], **everything)

    def _execute_child(self, *arguments: Any) -> None:
        """Where `subprocess.Popen` forks: ask the server for a child instead."""
        given = inspect.signature(subprocess.Popen._execute_child).bind(self, *arguments).arguments  # pyright: ignore
        assert given["preexec_fn"] is None, "a fork of another process cannot call it"
        streams = [
            (given["p2cread"], given["p2cwrite"], 0),
            (given["c2pwrite"], given["c2pread"], 1),
            (given["errwrite"], given["errread"], 2),
        ]
        request = {
            "arguments": given["args"],
            "environment": dict(given["env"] or os.environ),
            "folder": os.fspath(given["cwd"] or Path.cwd()),
            "new_session": given["start_new_session"],
        }
        self._server = socket.socket(socket.AF_UNIX)
        self._server.connect(_address())
        ours = [theirs if theirs != -1 else stream for theirs, _, stream in streams]
        _send(self._server, request, ours)
        self.pid = self._number()
        self._child_created = True
        for theirs, other, _ in streams:
            if other != -1:  # a pipe of this object, not a file of the caller
                os.close(theirs)

    def _number(self) -> int:
        """What the server says next: the process's number, then its status at its end."""
        answer = self._server.recv(4)
        assert len(answer) == 4, "the server of warm processes ended"
        return int.from_bytes(answer, "little")

    def wait(self, timeout: float | None = None) -> int:
        if self.returncode is None:
            self._server.settimeout(timeout)
            try:
                status = self._number()
            except (TimeoutError, BlockingIOError):
                raise subprocess.TimeoutExpired(self.args, timeout or 0) from None
            self.returncode = os.waitstatus_to_exitcode(status)
            self._server.close()
        return self.returncode

    def _internal_poll(self, *_: Any, **__: Any) -> int | None:
        with contextlib.suppress(subprocess.TimeoutExpired):
            return self.wait(timeout=0)
        return None


@cache
def _address() -> str:
    """The address of this process's server, which ends with it."""
    folder = tempfile.mkdtemp(prefix="bertcli-warm-")
    atexit.register(shutil.rmtree, folder)
    address = f"{folder}/socket"
    server = subprocess.Popen(
        [sys.executable, "-m", "tests.warm", address],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        start_new_session=True,
        cwd=Path(__file__).parents[1],
    )
    atexit.register(server.communicate)  # closes its standard input, which ends it
    assert server.stdout is not None
    server.stdout.readline()
    return address


def _send(connection: socket.socket, request: dict[str, Any], descriptors: list[int]) -> None:
    """One message: the request, whose descriptors travel beside it."""
    carried = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", descriptors))]
    message = json.dumps(request).encode()
    connection.sendmsg([len(message).to_bytes(4, "little")], carried)
    connection.sendall(message)


def _serve(address: str) -> dict[str, Any]:
    """Fork a child for each request until standard input ends; return the request in the child alone."""
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(address)
    listener.listen()
    woken, waker = socket.socketpair()
    waker.setblocking(False)
    signal.set_wakeup_fd(waker.fileno())
    signal.signal(signal.SIGCHLD, lambda number, frame: None)
    sys.stdout.write("ready\n")
    sys.stdout.flush()
    waited: dict[int, socket.socket] = {}
    with selectors.DefaultSelector() as selector:
        for source in (0, listener, woken):
            selector.register(source, selectors.EVENT_READ)
        while True:
            ready = [key.fileobj for key, _ in selector.select()]
            if 0 in ready:
                raise SystemExit
            if woken in ready:
                woken.recv(4096)
                for process in list(waited):
                    if (ended := os.waitpid(process, os.WNOHANG))[0]:
                        connection = waited.pop(process)
                        with contextlib.suppress(BrokenPipeError):
                            connection.sendall(ended[1].to_bytes(4, "little"))
                        connection.close()
            if listener in ready:
                connection, _ = listener.accept()
                length, descriptors, *_ = socket.recv_fds(connection, 4, 3)
                request = json.loads(connection.recv(int.from_bytes(length, "little"), socket.MSG_WAITALL))
                if (process := os.fork()) == 0:
                    signal.set_wakeup_fd(-1)
                    for each in (listener, woken, waker, connection, *waited.values()):
                        each.close()
                    return request | {"descriptors": descriptors}
                for descriptor in descriptors:
                    os.close(descriptor)
                waited[process] = connection
                connection.sendall(process.to_bytes(4, "little"))


def _become(request: dict[str, Any]) -> None:
    """What a new process has from its caller."""
    for number in (signal.SIGCHLD, signal.SIGHUP):
        signal.signal(number, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    for stream, descriptor in enumerate(request["descriptors"]):
        os.dup2(descriptor, stream)
        os.close(descriptor)
    if request["new_session"]:
        os.setsid()
        if os.isatty(0):
            fcntl.ioctl(0, termios.TIOCSCTTY, 0)
    os.environ.clear()
    os.environ.update(request["environment"])
    os.chdir(request["folder"])
    sys.stdin = os.fdopen(0, encoding="utf-8", closefd=False)
    sys.stdout = os.fdopen(1, "w", buffering=1 if os.isatty(1) else -1, encoding="utf-8", closefd=False)
    sys.stderr = os.fdopen(2, "w", buffering=1, encoding="utf-8", errors="backslashreplace", closefd=False)
    faulthandler.enable()  # SIGABRT lets a process that hangs say where
    sys.argv = ["bertcli", *request["arguments"]]


if __name__ == "__main__":
    ours = pkgutil.walk_packages(bertcli.__path__, prefix="bertcli.")
    for name in (*(module.name for module in ours), "torch._dynamo", "torch.distributed.fsdp"):
        if name != "bertcli.__main__":
            with contextlib.suppress(ModuleNotFoundError):  # of an extra that is not installed
                importlib.import_module(name)
    gc.freeze()  # children share what no collection visits
    _become(_serve(sys.argv[1]))
    runpy.run_module("bertcli", run_name="__main__", alter_sys=True)
