"""A server in a thread of the test, and requests to it."""

from __future__ import annotations

import contextlib
import http.client
import json
import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from bertcli.inference.opened import Compute
from bertcli.inference.serve.engine import Served, open_served
from bertcli.inference.serve.server import Server
from bertcli.system.processes import bound_socket


@dataclass
class Reply:
    """A response."""

    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)


@dataclass
class Client:
    """Requests to a server in this process."""

    server: Server
    port: int

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def request(self, method: str, path: str, body: Any = None, **headers: str) -> Reply:
        """One request with a connection of its own."""
        data = body if isinstance(body, bytes | None) else json.dumps(body).encode()
        given = {"Content-Type": "application/json"} if data is not None else {}
        given |= {name.replace("_", "-"): value for name, value in headers.items()}
        with contextlib.closing(http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)) as connection:
            connection.request(method, path, data, given)
            response = connection.getresponse()
            return Reply(response.status, dict(response.getheaders()), response.read())

    def post(self, path: str, body: Any, **headers: str) -> Reply:
        return self.request("POST", path, body, **headers)

    def get(self, path: str, **headers: str) -> Reply:
        return self.request("GET", path, **headers)


@contextlib.contextmanager
def serving(served: Sequence[Served], key: str | None = None, hosts: Sequence[str] = ()) -> Iterator[Client]:
    """A server that answers, without its signals."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Server, "capture_signals", lambda self: contextlib.nullcontext())
        patch.setattr("bertcli.inference.serve.server.GRACE_SECONDS", 0.0)
        listening = bound_socket("127.0.0.1", 0)
        server = Server(served, key, hosts)
        thread = threading.Thread(target=server.run, args=([listening],), daemon=True)
        thread.start()
        deadline = time.monotonic() + 60
        while not server.started and time.monotonic() < deadline:
            time.sleep(0.005)
        yield Client(server, listening.getsockname()[1])
        server.should_exit = True
        thread.join(timeout=60)
        assert not thread.is_alive()


def opened(folder: Path, *names: str) -> list[Served]:
    """Models of a folder, computed by bertcli."""
    return [open_served(name, folder / name, Compute("cpu", "fp32"), engine="bertcli") for name in names]


def near(found: Any, expected: Any) -> bool:
    """Equal, numbers within 1e-6."""
    if isinstance(expected, dict):
        return found.keys() == expected.keys() and all(near(found[key], expected[key]) for key in expected)
    if isinstance(expected, list | tuple):
        return len(found) == len(expected) and all(map(near, found, expected))
    return found == pytest.approx(expected, abs=1e-6) if isinstance(expected, float) else found == expected
