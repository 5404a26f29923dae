"""The server: which requests get through, what is counted, what signals do; nothing of a text in any log."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import hmac
import json
import os
import re
import signal
import socket
import sys
import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from http import HTTPStatus
from importlib.metadata import version
from ipaddress import ip_address
from typing import Any

import uvicorn
from fastapi import APIRouter, FastAPI, Response
from fastapi.responses import HTMLResponse
from prometheus_client import generate_latest

from bertcli.inference.serve import page as pages
from bertcli.inference.serve.connection import BODY_SECONDS, IDLE_SECONDS, Connection
from bertcli.inference.serve.engine import Served
from bertcli.inference.serve.other_routes import (
    Metrics,
    add_other_routes,
    log_failure,
    refusal,
    refuse_errors,
    refused,
)
from bertcli.inference.serve.queue import TOKENS, Overloaded, Queue
from bertcli.inference.serve.routes import Models, Route, add_routes, json_response, routes_of
from bertcli.reports.page import page
from bertcli.system.processes import raise_file_limit
from bertcli.system.terminal import say, working

MOST_BYTES = 2_000_000
"""Largest body of a request."""
MOST_HELD = 64_000_000
"""Most bytes of all bodies whose requests are not answered yet, whose texts take a few times as much, and of
answers that slow clients have not taken."""
GRACE_SECONDS = 0.25
"""Seconds after a signal in which requests still come in: those that were sent before it."""
_TURNS = 10
"""Turns of the event loop after that. It accepts a connection, makes it and reads from it in a turn each, and
on a busy machine it may find all of that still to be done."""
OPEN_PATHS = ("/", "/docs", "/health", "/openapi.json")
"""Paths that show nothing of the models, and need no key."""
LOOPBACK = ("localhost", "127.0.0.1", "[::1]")
"""The names of this machine that no web page can have."""
SWITCH_SECONDS = 0.0005
"""Time after which a thread must let another one run. Python's own, ten times as long, would let the thread
that answers wait after each operation of torch."""


class Gate:
    """The application around FastAPI's: keys, sizes and times of requests, errors, metrics. It answers the
    paths that take JSON itself.

    Attributes:
        is_ending: whether the server ends, and each answer closes its connection.
    """

    def __init__(
        self,
        app: FastAPI,
        routes: Mapping[str, Route],
        metrics: Metrics,
        key: str | None,
        hosts: Collection[str],
    ) -> None:
        """`hosts`: the names by which the server may be asked; none: by any."""
        self._app, self._routes, self._metrics, self._key, self._hosts = app, routes, metrics, key, hosts
        self._held = 0
        self._paths = {*app.openapi()["paths"], *OPEN_PATHS, pages.PATH}
        self.is_ending = False

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Answer a request of ASGI."""
        begun, path = time.monotonic(), scope["path"]
        status, started = 500, False

        async def send_counted(message: Any) -> None:
            nonlocal status, started
            if message["type"] == "http.response.start":
                status, started = message["status"], True
                if self.is_ending:
                    message["headers"] = [*message["headers"], (b"connection", b"close")]
            await send(message)

        scope["bertcli"].task = asyncio.current_task()
        body = scope["body"] = bytearray()
        try:
            response = await self._refuse(scope, receive, body)
            if response is None and scope["method"] == "POST" and path in self._routes:
                response = await self._routes[path](_header(scope, b"content-type"), bytes(body))
            await (response or self._app)(scope, receive, send_counted)
        except asyncio.CancelledError:  # the client is gone
            status = 499
        except Exception as error:
            if not started:
                await refused(path, error)(scope, receive, send_counted)
        finally:
            self._held -= len(body)
        known = path if path in self._paths else "other"
        self._metrics.requests.labels(known, str(status)).inc()
        self._metrics.seconds.observe(time.monotonic() - begun)

    async def _refuse(self, scope: Any, receive: Any, body: bytearray) -> Response | None:
        """Read the body; a response if the request must not reach the application."""
        path, is_known, has_key, size = scope["path"], self._has_host(scope), self._has_key(scope), 0
        try:
            async with asyncio.timeout(BODY_SECONDS):
                more = True
                while more:
                    message = await receive()
                    if message["type"] == "http.disconnect":
                        raise asyncio.CancelledError
                    part, more = message.get("body", b""), message.get("more_body", False)
                    size += len(part)
                    held = self._held + Connection.unsent() + len(part)
                    if is_known and has_key and size <= MOST_BYTES and held <= MOST_HELD:
                        body += part
                        self._held += len(part)
                    elif body:  # the rest is read, because a client that writes does not see an answer
                        self._held -= len(body)
                        body.clear()
        except TimeoutError:
            message = f"the body did not come within {BODY_SECONDS:g} seconds"
            return refusal(path, HTTPStatus.REQUEST_TIMEOUT, message, connection="close")
        if not is_known:
            message = f"the server is not known by this name; it is asked at {', '.join(LOOPBACK)}"
            return refusal(path, HTTPStatus.MISDIRECTED_REQUEST, message)
        if not has_key:
            message = "the key is missing or wrong: send Authorization: Bearer KEY"
            return refusal(path, HTTPStatus.UNAUTHORIZED, message, www_authenticate="Bearer")
        if size > MOST_BYTES:
            message = f"the body has more than {MOST_BYTES:,} bytes; send the texts in several requests"
            return refusal(path, HTTPStatus.REQUEST_ENTITY_TOO_LARGE, message)
        if size > len(body):
            return refused(path, Overloaded(1))
        return None

    def _has_key(self, scope: Any) -> bool:
        if self._key is None or (scope["path"] in OPEN_PATHS and scope["method"] in ("GET", "HEAD")):
            return True
        kind, _, key = _header(scope, b"authorization").partition(b" ")
        same = hmac.compare_digest(key.strip(), self._key.encode())
        return same and kind.lower() == b"bearer"

    def _has_host(self, scope: Any) -> bool:
        """False for a request that a web page of another name may have sent (DNS rebinding)."""
        given = _header(scope, b"host").decode("latin-1")
        return not self._hosts or not given or re.sub(r":\d+$", "", given).lower() in self._hosts


def _header(scope: Any, name: bytes) -> bytes:
    """The first header of this name, or nothing."""
    return next((value for key, value in scope["headers"] if key == name), b"")


def build_app(models: Models, metrics: Metrics, router: APIRouter, needs_key: bool) -> FastAPI:
    """The application: the routes of a router, which it describes, and what shows the server itself."""
    app = FastAPI(
        title="bertcli", version=version("bertcli"), docs_url=None, redoc_url=None, redirect_slashes=False
    )

    @app.head("/health", include_in_schema=False)
    @app.get("/health", tags=["server"])
    async def health() -> Response:
        """Status 200 while the server answers."""
        return Response(
            status_code=HTTPStatus.OK if models.queue.is_alive else HTTPStatus.SERVICE_UNAVAILABLE
        )

    @app.get("/info", tags=["server"])
    async def info() -> Response:
        """The models: what they answer, and what computes them."""
        served = [each.as_json() for each in models.served.values()]
        return json_response({"version": app.version, "models": served})

    @app.get("/metrics", tags=["server"])
    async def show_metrics() -> Response:
        """Numbers for Prometheus."""
        return Response(generate_latest(metrics.registry), media_type="text/plain; version=0.0.4")

    @app.get("/docs", include_in_schema=False)
    async def docs() -> Response:
        values = {"version": app.version, "groups": _described(app.openapi())}
        return HTMLResponse(page("bertcli serve", "serve_docs.html.j2", values))

    pages.add_page(app, models, needs_key)
    refuse_errors(app)
    app.include_router(router)
    return app


def _described(schema: Mapping[str, Any]) -> dict[str, list[dict[str, Any]]]:
    """The routes of a schema of OpenAPI by their tags, for the page `/docs`."""
    groups: dict[str, list[dict[str, Any]]] = {}
    for path, methods in schema["paths"].items():
        for method, route in methods.items():
            content = route.get("requestBody", {}).get("content", {}).get("application/json", {})
            name = content.get("schema", {}).get("$ref", "").rpartition("/")[2]
            body = schema.get("components", {}).get("schemas", {}).get(name, {})
            keys = [
                {
                    "name": key,
                    "kind": _kind(each),
                    "default": json.dumps(each["default"]) if each.get("default") is not None else "",
                    "is_required": key in body.get("required", ()),
                    "description": each.get("description", ""),
                }
                for key, each in body.get("properties", {}).items()
            ]
            found = {"path": path, "method": method.upper(), "what": route["description"], "body": keys}
            groups.setdefault(route["tags"][0], []).append(found)
    return groups


def _kind(schema: Mapping[str, Any]) -> str:
    """The type of a key in words, such as `string or list of string`."""
    kinds = [_kind(each) for each in schema.get("anyOf", ()) if each.get("type") != "null"]
    if schema.get("type") == "array":
        kinds = [f"list of {_kind(schema['items'])}"]
    return " or ".join(kinds) or schema.get("type", "object")


class Server(uvicorn.Server):
    """The server of uvicorn: a signal lets it answer what is under way, a second one ends the process."""

    def __init__(self, served: Sequence[Served], key: str | None, hosts: Collection[str] = ()) -> None:
        """`key`: what clients must send; None: nothing. `hosts`: as `Gate` has them."""
        metrics, tokens = Metrics(), TOKENS[served[0].device.type]
        self.queue = Queue(tokens, seen=metrics.see, failed=log_failure)
        metrics.waiting.set_function(lambda: self.queue.waiting)
        models, router = Models({each.name: each for each in served}, self.queue), APIRouter()
        add_routes(router, models)
        add_other_routes(router, models)
        app = build_app(models, metrics, router, needs_key=key is not None)
        self._gate, self._key = Gate(app, routes_of(router), metrics, key=key, hosts=hosts), key
        silent = {"log_config": None, "log_level": "critical", "access_log": False}
        plain = {"server_header": False, "date_header": False, "proxy_headers": False}
        own = {"http": Connection, "ws": "none", "lifespan": "off", "timeout_keep_alive": IDLE_SECONDS}
        options: dict[str, Any] = {**silent, **plain, **own}
        super().__init__(uvicorn.Config(self._gate, **options))

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        numbers = (signal.SIGINT, signal.SIGTERM)
        before = {number: signal.signal(number, self.handle_exit) for number in numbers}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)

    def handle_exit(self, sig: int, frame: Any) -> None:
        if self.should_exit:
            os._exit(128 + sig)
        self.should_exit = self._gate.is_ending = True

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        loop = asyncio.get_running_loop()
        loop.set_exception_handler(lambda loop, context: log_failure(context.get("exception")))
        await super().startup(sockets)
        host, port = self.servers[0].sockets[0].getsockname()[:2]
        address, needs = f"[{host}]" if ":" in host else host, "with" if self._key else "without"
        say(f"serving at http://{address}:{port} {needs} a key; Ctrl-C ends")

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        say("ending: requests that are under way are answered; a second signal ends at once")
        await asyncio.sleep(GRACE_SECONDS)
        for _ in range(_TURNS):
            await asyncio.sleep(0)
        await super().shutdown(sockets)
        self.queue.close()


def serve(served: Sequence[Served], listening: socket.socket, key: str | None) -> None:
    """Answer requests at a socket until SIGTERM or Ctrl-C."""
    raise_file_limit()
    sys.setswitchinterval(SWITCH_SECONDS)
    address = listening.getsockname()[0]
    is_private = ip_address(address).is_loopback and key is None
    server = Server(served, key, (*LOOPBACK, address) if is_private else ())
    for each in served:
        say(f"{each.name}: {', '.join(each.kinds)}; computed by {each.engine} on {each.device}")
    gc.collect()
    gc.freeze()  # else each full collection would go through all objects of torch, and all threads would wait
    with working(lambda: ""):
        server.run([listening])
