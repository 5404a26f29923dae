"""Keys, large bodies, slow clients, clients that leave, and the end of the server."""

from __future__ import annotations

import contextlib
import json
import re
import socket
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from bertcli.inference.predict import AsRead, Predictions
from bertcli.inference.serve import connection as connections
from bertcli.inference.serve import queue, server
from tests.inference.serve.serving import Client, opened, serving

KEY = "a key: 1"
REQUEST = b"POST /v1/bertcli/predict HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
BODY = {"rows": "the cat"}
Slow = tuple[Client, threading.Event, list[int]]
"""A server, an event for which each computation waits, and the number of texts of each computation."""


@pytest.fixture(scope="module")
def locked(folders: Path) -> Iterator[Client]:
    """A server that needs a key."""
    with serving(opened(folders, "multi-label"), KEY) as client:
        yield client


@pytest.fixture
def slow(
    folders: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[tuple[Client, threading.Event, list[int]]]:
    """A server, an event for which each computation waits, and the number of texts of each computation."""
    go, sizes = threading.Event(), list[int]()
    compute = Predictions.compute

    def wait_and_compute(self: Predictions, several: list[AsRead]) -> Any:
        go.wait(timeout=30)
        sizes.append(len(several))
        return compute(self, several)

    monkeypatch.setattr(Predictions, "compute", wait_and_compute)
    with serving(opened(folders, "multi-label")) as client:
        yield client, go, sizes
        go.set()


def until(happens: Any) -> None:
    """Wait for it, at most some seconds."""
    deadline = time.monotonic() + 20
    while not happens():
        assert time.monotonic() < deadline
        time.sleep(0.005)


@contextlib.contextmanager
def connected(client: Client) -> Iterator[socket.socket]:
    with contextlib.closing(socket.create_connection(("127.0.0.1", client.port), timeout=30)) as connection:
        yield connection


def sent(connection: socket.socket, body: object = BODY, path: bytes = b"predict") -> None:
    """Send a whole request."""
    data = json.dumps(body).encode()
    connection.sendall(REQUEST.replace(b"predict", path) + b"Content-Length: %d\r\n\r\n" % len(data) + data)


def received(connection: socket.socket) -> bytes:
    """All that comes until the server closes the connection."""
    parts = []
    while part := connection.recv(1 << 16):
        parts.append(part)
    return b"".join(parts)


@pytest.mark.parametrize(
    "given", ["", "Bearer", "Bearer a key", f"Basic {KEY}", f"Bearer {KEY}1", "Bearer \xe9"]
)
def test_a_request_without_the_key_is_refused(locked: Client, given: str) -> None:
    reply = locked.post("/v1/bertcli/predict", BODY, Authorization=given)
    assert (reply.status, reply.headers["www-authenticate"]) == (401, "Bearer")
    assert "Authorization: Bearer KEY" in reply.json["error"]
    for path in ("/info", "/metrics", "/nothing"):
        assert locked.get(path, Authorization=given).status == 401
    for path in ("/health", "/docs", "/openapi.json"):
        assert locked.get(path).status == 200
    assert locked.request("HEAD", "/health").status == 200
    assert locked.post("/", {"inputs": "the cat"}).status == 401


def test_the_key_opens(locked: Client) -> None:
    assert locked.post("/v1/bertcli/predict", BODY, Authorization=f"Bearer {KEY}").status == 200
    assert locked.get("/info", Authorization=f"bearer {KEY}").status == 200


def test_an_error_at_the_path_of_openai_has_its_form(locked: Client) -> None:
    reply = locked.post("/v1/embeddings", {"input": "a"})
    assert (reply.status, reply.json["error"]["type"], reply.json["error"]["code"]) == (
        401,
        "invalid_request_error",
        401,
    )


def test_a_large_body_is_read_but_not_kept(folders: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server, "MOST_BYTES", 1000)
    with serving(opened(folders, "multi-label")) as client:
        assert client.post("/v1/bertcli/predict", {"rows": "a" * 980}).status == 200
        reply = client.post("/v1/bertcli/predict", {"rows": "a" * 5_000_000})
        assert (reply.status, reply.json["error"]) == (
            413,
            "the body has more than 1,000 bytes; send the texts in several requests",
        )
        with connected(client) as connection:
            connection.sendall(REQUEST + b"Transfer-Encoding: chunked\r\nConnection: close\r\n\r\n")
            for _ in range(100):
                connection.sendall(b"20\r\n" + b"x" * 32 + b"\r\n")
            connection.sendall(b"0\r\n\r\n")
            assert received(connection).startswith(b"HTTP/1.1 413 ")
        assert client.server._gate._held == 0


def test_bodies_that_would_take_too_much_memory_are_refused(
    slow: Slow, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server, "MOST_HELD", 1500)
    client, go, _ = slow
    with connected(client) as connection:
        sent(connection, {"rows": "a" * 1000})
        until(lambda: client.server._gate._held > 1000)
        reply = client.post("/v1/bertcli/predict", {"rows": "a" * 1000})
        assert (reply.status, int(reply.headers["retry-after"]) >= 1) == (429, True)
        assert client.get("/health").status == 200
        go.set()
        assert connection.recv(100).startswith(b"HTTP/1.1 200 ")
    until(lambda: client.server._gate._held == 0)


def test_a_server_of_this_machine_alone_is_not_asked_by_another_name(folders: Path) -> None:
    with serving(opened(folders, "vectors"), hosts=server.LOOPBACK) as client:
        for name in ("localhost", "LOCALHOST:8000", "[::1]:80", f"127.0.0.1:{client.port}"):
            assert client.get("/info", Host=name).status == 200
        for path in ("/info", "/health", "/"):
            reply = client.get(path, Host="evil.example:8000")
            assert (reply.status, "is asked at localhost, 127.0.0.1, [::1]" in reply.json["error"]) == (
                421,
                True,
            )
        reply = client.post("/embed/", {"inputs": "a"})  # no redirect, which would name any host
        assert (reply.status, "location" in reply.headers) == (404, False)


def test_answers_that_nobody_takes_count_as_memory(folders: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server, "MOST_HELD", 2_000_000)
    with serving(opened(folders, "vectors")) as client, connected(client) as connection:
        sent(connection, LARGE, path=b"similarity")
        until(lambda: connections.Connection.unsent() > 2_000_000)
        assert client.post("/embed", {"inputs": "a"}).status == 429
        assert client.get("/health").status == 200
        connection.close()
        until(lambda: not connections.Connection.unsent())
        assert client.post("/embed", {"inputs": "a"}).status == 200


def test_a_full_queue_says_when_to_come_again(slow: Slow, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(queue, "MOST_WAITING", 1)
    client, go, _ = slow
    with connected(client) as first, connected(client) as second:
        sent(first)
        until(lambda: client.server.queue._lines and not client.server.queue.waiting)
        sent(second)
        until(lambda: client.server.queue.waiting == 1)
        reply = client.post("/v1/bertcli/predict", BODY)
        assert (reply.status, reply.json["error_type"], reply.headers["retry-after"]) == (
            429,
            "Overloaded",
            "1",
        )
        go.set()
        assert first.recv(100).startswith(b"HTTP/1.1 200 ")
        assert second.recv(100).startswith(b"HTTP/1.1 200 ")


def test_a_client_that_leaves_is_not_computed(slow: Slow) -> None:
    client, go, sizes = slow
    with connected(client) as first:
        sent(first)
        until(lambda: client.server.queue._lines and not client.server.queue.waiting)
        with connected(client) as gone:
            sent(gone, {"rows": ["a", "b"]})
            until(lambda: client.server.queue.waiting == 2)
        until(lambda: b'status="499"' in client.get("/metrics").body)
        go.set()
        assert first.recv(100).startswith(b"HTTP/1.1 200 ")
    until(lambda: client.server.queue.waiting == 0)
    assert sizes == [1]


@pytest.mark.parametrize("part", [b"", b"POST /v1/bertcli/pred", REQUEST])
def test_headers_that_do_not_come_end_the_connection(
    folders: Path, monkeypatch: pytest.MonkeyPatch, part: bytes
) -> None:
    monkeypatch.setattr(connections, "HEADER_SECONDS", 0.2)
    with serving(opened(folders, "multi-label")) as client, connected(client) as connection:
        connection.sendall(part)
        assert received(connection).startswith(b"HTTP/1.1 408 ")


def test_the_headers_of_a_second_request_have_their_time_too(
    folders: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connections, "HEADER_SECONDS", 0.3)
    with serving(opened(folders, "multi-label")) as client, connected(client) as connection:
        sent(connection)
        assert connection.recv(1 << 16).startswith(b"HTTP/1.1 200 ")
        connection.sendall(REQUEST)
        assert received(connection).startswith(b"HTTP/1.1 408 ")


def test_a_body_that_does_not_come_is_refused(folders: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server, "BODY_SECONDS", 0.2)
    with serving(opened(folders, "multi-label")) as client, connected(client) as connection:
        connection.sendall(REQUEST + b"Content-Length: 10\r\n\r\n{")
        assert received(connection).startswith(b"HTTP/1.1 408 ")


LARGE = {"model": "vectors", "queries": "the cat " * 3000, "texts": ["a"] * 500, "top": 500}
"""A request of 28 kB whose answer has 12 MB, more than the system keeps for a client that does not read."""


def test_a_client_that_does_not_take_its_answer_is_left(
    folders: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connections, "BODY_SECONDS", 0.2)
    with serving(opened(folders, "vectors")) as client, connected(client) as connection:
        sent(connection, LARGE, path=b"similarity")
        until(lambda: client.server.server_state.connections)
        until(lambda: not client.server.server_state.connections)


def test_a_client_that_takes_its_answer_slowly_gets_all_of_it(
    folders: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connections, "BODY_SECONDS", 0.1)
    with serving(opened(folders, "vectors")) as client, connected(client) as connection:
        sent(connection, LARGE, path=b"similarity")
        header, _, body = connection.recv(1 << 16).partition(b"\r\n\r\n")
        left = int(re.findall(rb"content-length: (\d+)", header)[0]) - len(body)
        while left:
            time.sleep(0.005)
            part = connection.recv(1 << 18)
            assert part
            left -= len(part)


def test_bytes_that_are_no_request_are_refused(locked: Client, capsys: pytest.CaptureFixture[str]) -> None:
    with connected(locked) as connection:
        connection.sendall(b"secret\x00\xff\r\n\r\n")
        assert received(connection).startswith(b"HTTP/1.1 400 ")
    assert capsys.readouterr().err == ""


def test_requests_that_are_under_way_are_answered_at_the_end(
    folders: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    go = threading.Event()
    compute = Predictions.compute
    monkeypatch.setattr(Predictions, "compute", lambda self, several: go.wait(30) and compute(self, several))
    with serving(opened(folders, "multi-label")) as client:
        with connected(client) as first, connected(client) as idle:
            sent(first)
            until(lambda: client.server.queue._lines and not client.server.queue.waiting)
            client.server.handle_exit(15, None)
            assert received(idle) == b""  # nothing was asked
            go.set()
            answer = received(first)
        assert answer.startswith(b"HTTP/1.1 200 ")
        assert b"connection: close" in answer
