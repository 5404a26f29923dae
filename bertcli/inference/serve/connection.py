"""A connection whose client must be quick enough: it sends its request in time, and takes its answer."""

from __future__ import annotations

import asyncio
from typing import Any, ClassVar

from uvicorn.protocols.http.h11_impl import H11Protocol

HEADER_SECONDS, BODY_SECONDS, IDLE_SECONDS = 10.0, 30.0, 60
"""Seconds that a client has for the headers and for the body of a request, and for its next request. It must
take a part of an answer within the time for a body."""


class Connection(H11Protocol):
    """A connection of uvicorn whose client must send its headers in time, and whose request ends with it."""

    paused: ClassVar[set[Connection]] = set()
    """The connections whose clients take their answers more slowly than they come."""
    task: asyncio.Task[None] | None = None
    _timer: asyncio.TimerHandle | None = None
    _stalled: asyncio.TimerHandle | None = None

    @classmethod
    def unsent(cls) -> int:
        """The bytes of answers that slow clients have not taken."""
        return sum(each.transport.get_write_buffer_size() for each in cls.paused)

    def connection_made(self, transport: Any) -> None:
        super().connection_made(transport)
        self._watch()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        self._watch()

    def handle_events(self) -> None:
        super().handle_events()
        if self.cycle is not None and not self.cycle.response_complete:
            self.cycle.scope["bertcli"] = self  # pyright: ignore[reportGeneralTypeIssues]

    def connection_lost(self, exc: Exception | None) -> None:
        for timer in (self._timer, self._stalled):
            if timer is not None:
                timer.cancel()
        if self.task is not None and self.cycle is not None and not self.cycle.response_complete:
            self.task.cancel()
        self.paused.discard(self)
        super().connection_lost(exc)

    def on_response_complete(self) -> None:
        super().on_response_complete()
        self._end_in_time()

    def shutdown(self) -> None:
        super().shutdown()
        self._end_in_time()

    def timeout_keep_alive_handler(self) -> None:
        super().timeout_keep_alive_handler()
        self._end_in_time()

    def pause_writing(self) -> None:
        super().pause_writing()
        self.paused.add(self)
        self._end_in_time()

    def resume_writing(self) -> None:
        super().resume_writing()
        self.paused.discard(self)
        self._end_in_time()

    def _end_in_time(self, left: int | None = None) -> None:
        """End a connection whose client takes nothing of its answer for a while; `left`: its bytes before."""
        if self._stalled is not None:
            self._stalled.cancel()
        size = self.transport.get_write_buffer_size()
        if left is not None and size >= left:
            self.transport.abort()
        elif size:
            self._stalled = self.loop.call_later(BODY_SECONDS, self._end_in_time, size)

    def _watch(self) -> None:
        """Begin the time for the headers, or end it if they are there."""
        waits = self.cycle is None or self.cycle.response_complete
        if self._timer is not None and not waits:
            self._timer.cancel()
            self._timer = None
        elif self._timer is None and waits and not self.transport.is_closing():
            self._timer = self.loop.call_later(HEADER_SECONDS, self._refuse_slow)

    def _refuse_slow(self) -> None:
        if not self.transport.is_closing():
            self.transport.write(
                b"HTTP/1.1 408 Request Timeout\r\nconnection: close\r\ncontent-length: 0\r\n\r\n"
            )
            self.timeout_keep_alive_handler()
