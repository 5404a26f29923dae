"""Servers of the tests: one of the web, which breaks off where a test says, and one of S3."""

from __future__ import annotations

import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest


class WebServer(ThreadingHTTPServer):
    """A server of `files` (path -> bytes).

    Attributes:
        breaks: how many of all bytes are sent before each break; -1: each request breaks off.
        refused: path -> the status that a request gets; a text is the address of a redirection.
        types: path -> the content type that it declares.
        has_parts: whether it gives parts of a file.
    """

    def __init__(self, files: dict[str, bytes]) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.files, self.breaks, self.sent = files, list[int](), 0
        self.refused: dict[str, int | str] = {}
        self.types: dict[str, str] = {}
        self.has_parts = True

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"

    def until_break(self, wanted: int) -> int:
        """How many of the bytes are sent before the connection breaks."""
        if not self.breaks or self.sent + wanted <= self.breaks[0]:
            return wanted
        return max(0, (self.breaks[0] if self.breaks[0] < 0 else self.breaks.pop(0)) - self.sent)

    def handle_error(self, request, client_address) -> None:  # a client that goes away is no fault
        pass


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True  # else each answer waits 40 ms for an acknowledgement
    server: WebServer  # pyright: ignore[reportIncompatibleVariableOverride]

    def do_GET(self) -> None:
        path = self.path.partition("?")[0]
        status = self.server.refused.get(path, 200 if path in self.server.files else 404)
        if status != 200:
            self.send_response(302 if isinstance(status, str) else status)
            if isinstance(status, str):
                self.send_header("Location", status)
            self.send_header("Content-Length", "0")
            self.end_headers()
            return
        data = self.server.files[path]
        part = (
            re.fullmatch(r"bytes=(\d+)-(\d+)", self.headers.get("Range", ""))
            if self.server.has_parts
            else None
        )
        body = data[int(part[1]) : int(part[2]) + 1] if part else data
        self.send_response(206 if part else 200)
        if part:
            self.send_header("Content-Range", f"bytes {part[1]}-{part[2]}/{len(data)}")
        if path in self.server.types:
            self.send_header("Content-Type", self.server.types[path])
        self.send_header("ETag", f'"{hash(data):x}"')
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command == "HEAD":
            return
        sent = self.server.until_break(len(body))
        self.server.sent += sent
        self.wfile.write(body[:sent])
        self.close_connection = sent < len(body)

    do_HEAD = do_GET

    def log_message(self, format: str, *args) -> None:
        pass


@contextmanager
def web_server(files: dict[str, bytes]) -> Iterator[WebServer]:
    with WebServer(files) as server:
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        yield server
        server.shutdown()


@contextmanager
def s3_server(bucket: str, secret: str = "testing") -> Iterator[Any]:
    """A client of a server of S3, whose address and credentials are in the environment; it has a bucket.

    All servers of a process have the same buckets.
    """
    moto = pytest.importorskip("moto.server")
    import botocore.session

    server = moto.ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    with pytest.MonkeyPatch.context() as patch:
        for key in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
            patch.setenv(key, secret)
        patch.setenv("AWS_DEFAULT_REGION", "us-east-1")
        patch.setenv("AWS_ENDPOINT_URL", f"http://{host}:{port}")
        client = botocore.session.get_session().create_client("s3")
        client.create_bucket(Bucket=bucket)
        yield client
    forget_connections()
    server.stop()


def forget_connections() -> None:
    """Let the next file of S3 be opened with the credentials that the environment has then."""
    import fsspec

    fsspec.get_filesystem_class("s3").clear_instance_cache()
