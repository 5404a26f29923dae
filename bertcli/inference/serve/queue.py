"""The texts that wait for their answers: computed together, by tokens, the longest waiting first."""

from __future__ import annotations

import asyncio
import contextlib
import math
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

from bertcli.inference.predict import Answers, AsRead
from bertcli.system.errors import UserError

MOST_WAITING = 1024
"""Most texts that wait; one request may have as many."""
TOKENS = {"cpu": 1024, "cuda": 16_384}
"""Tokens that are computed together, by the kind of device. More of them would not be computed faster."""


class TooLong(UserError):
    """A text that is longer than a row, for a client that asks for uncut texts alone."""


class Overloaded(Exception):
    """There is no room in the queue. `seconds`: when to ask again."""

    def __init__(self, seconds: int) -> None:
        super().__init__()
        self.seconds = seconds


class Failed(Exception):
    """The model could not compute an answer."""


class Answer(NamedTuple):
    """The answer to a question, and the numbers of its tokens that the model read and did not read."""

    value: Any
    tokens: int
    dropped: int


class Batch(NamedTuple):
    """Numbers of what was computed together, for metrics."""

    texts: int
    tokens: int
    dropped: int
    seconds: float


class _Asked:
    """A request: its answers so far, and the future that they go to."""

    def __init__(self, number: int, uncut: str) -> None:
        self.answers: list[Any] = [None] * number
        self.left, self.uncut = number, uncut
        self.arrived = time.monotonic()
        self.loop = asyncio.get_running_loop()
        self.future: asyncio.Future[list[Answer]] = self.loop.create_future()
        self.is_over = False
        """Whether its other questions are not to be computed: it failed, or its client is gone."""


class _Waiting:
    """A question that waits; `encoded` is None before the model's tokenizer has read it."""

    __slots__ = ("asked", "encoded", "place", "question")

    def __init__(self, asked: _Asked, place: int, question: Any) -> None:
        self.asked, self.place, self.question = asked, place, question
        self.encoded: AsRead | None = None


class Queue:
    """The questions of all requests, and the thread that answers them.

    The thread takes the question that has waited longest, then others for the same kind of answer, in their
    order, up to a number of tokens. A question of more tokens is computed in parts, and others are answered
    between two of them. `seen` is called with each batch, in the thread; `failed` with an error that is no
    `UserError`.
    """

    def __init__(
        self,
        tokens: int,
        seen: Callable[[Batch], None] = lambda batch: None,
        failed: Callable[[BaseException], None] = lambda error: None,
    ) -> None:
        self._tokens, self._seen, self._failed = tokens, seen, failed
        self._lines: dict[Answers, deque[_Waiting]] = {}
        self._long: deque[tuple[_Waiting, AsRead, Iterator[list[Any]], float]] = deque()
        self._number = 0
        self._ends = False
        self._changed = threading.Condition()
        self._thread = threading.Thread(target=self._work, name="answers", daemon=True)
        self._thread.start()

    @property
    def waiting(self) -> int:
        """The number of questions that wait."""
        return self._number

    @property
    def is_alive(self) -> bool:
        """True if the thread works."""
        return self._thread.is_alive()

    async def ask(self, answers: Answers, questions: Sequence[Any], uncut: str = "") -> list[Answer]:
        """The answers to all questions, in order.

        If the task that awaits them is canceled, questions that are not being computed are dropped.

        Args:
            uncut: what to advise where the model would not read a text to its end, which is refused then;
                "": texts may be cut.

        Raises:
            UserError: a question cannot be read.
            Failed: the model gives no numbers, or the machine failed.
            Overloaded: there is no room.
        """
        if len(questions) > MOST_WAITING:
            raise UserError(
                f"{len(questions):,} texts in one request; send at most {MOST_WAITING:,}, and the others in "
                "further requests"
            )
        if not questions:
            return []
        if not self.is_alive:
            raise Failed("the thread that computes has ended: start the server again")
        asked = _Asked(len(questions), uncut)
        with self._changed:
            if self._number + len(questions) > MOST_WAITING:
                self._forget()
            if self._number + len(questions) > MOST_WAITING:
                raise Overloaded(self._seconds_waited())
            line = self._lines.setdefault(answers, deque())
            line.extend(_Waiting(asked, place, each) for place, each in enumerate(questions))
            self._number += len(questions)
            self._changed.notify()
        try:
            return await asked.future
        finally:
            asked.is_over = True

    def close(self) -> None:
        """Let the thread end when nothing waits, and wait for that."""
        with self._changed:
            self._ends = True
            self._changed.notify()
        self._thread.join()

    def _forget(self) -> None:
        """Drop the questions of requests that are over."""
        for answers, line in self._lines.items():
            self._lines[answers] = deque(each for each in line if not each.asked.is_over)
        self._number = sum(map(len, self._lines.values()))

    def _seconds_waited(self) -> int:
        """Whole seconds that the first one has waited: at that pace the queue moves."""
        arrived = [line[0].asked.arrived for line in self._lines.values() if line]
        return max(1, math.ceil(time.monotonic() - min(arrived))) if arrived else 1

    def _work(self) -> None:
        while (answers := self._next()) is not None or self._long:
            if answers is not None and (some := self._draw(answers)):
                self._compute(answers, some)
            if self._long:
                self._go_on()

    def _compute(self, answers: Answers, some: Sequence[_Waiting]) -> None:
        begun = time.monotonic()
        encoded = [each.encoded for each in some if each.encoded is not None]
        if encoded[0].tokens > self._tokens:  # then it is alone
            self._long.append((some[0], encoded[0], answers.in_parts(encoded[0], self._tokens), 0.0))
            return
        try:
            values = answers.compute(encoded)
        except BaseException as error:  # the weights give no numbers; torch has no memory, or no device
            if len(some) > 1:  # one of them may be what fails
                for each in some:
                    self._compute(answers, [each])
                return
            return self._fail_computed(some, error)
        self._give(some, encoded, values, seconds=time.monotonic() - begun)

    def _go_on(self) -> None:
        (each, encoded, parts, seconds), begun = self._long.popleft(), time.monotonic()
        if each.asked.is_over:
            return
        try:
            values = next(parts)
        except BaseException as error:
            return self._fail_computed([each], error)
        seconds += time.monotonic() - begun
        if values:
            return self._give([each], [encoded], values, seconds=seconds)
        self._long.append((each, encoded, parts, seconds))

    def _fail_computed(self, some: Sequence[_Waiting], error: BaseException) -> None:
        if not isinstance(error, UserError):
            self._failed(error)
        self._fail(some, Failed(str(error) if isinstance(error, UserError) else "the computation failed"))

    def _next(self) -> Answers | None:
        """The kind of answer that has been waited for longest. It waits for one, unless a long question is
        under way; None then, and at the end."""
        with self._changed:
            while True:
                for line in self._lines.values():
                    while line and line[0].asked.is_over:
                        line.popleft()
                        self._number -= 1
                waited_for = [answers for answers, line in self._lines.items() if line]
                if waited_for:
                    return min(waited_for, key=lambda answers: self._lines[answers][0].asked.arrived)
                if self._ends or self._long:
                    return None
                self._changed.wait()

    def _draw(self, answers: Answers) -> list[_Waiting]:
        """Questions for one batch: at least one, if the first ones can be read."""
        some: list[_Waiting] = []
        tokens = 0
        while (each := self._pop(answers)) is not None:
            if each.encoded is None and not self._encode(answers, each):
                continue
            assert each.encoded is not None
            tokens += each.encoded.tokens
            if some and tokens > self._tokens:
                with self._changed:
                    self._lines[answers].appendleft(each)
                    self._number += 1
                break
            some.append(each)
            if not answers.together:
                break
        return some

    def _pop(self, answers: Answers) -> _Waiting | None:
        with self._changed:
            line = self._lines[answers]
            while line:
                each = line.popleft()
                self._number -= 1
                if not each.asked.is_over:
                    return each
        return None

    def _encode(self, answers: Answers, each: _Waiting) -> bool:
        """Read a question; false if its request has failed with it."""
        try:
            encoded = answers.encode(each.question)
            if encoded.dropped and each.asked.uncut:
                whole = encoded.tokens + encoded.dropped
                raise TooLong(
                    f"text {each.place + 1}: {whole:,} tokens, of which the model reads {encoded.tokens:,}; "
                    f"{each.asked.uncut}"
                )
        except UserError as error:
            self._fail([each], error)
            return False
        except BaseException as error:  # a panic in Rust is no `Exception`
            self._failed(error)
            self._fail([each], Failed("the text could not be read"))
            return False
        each.encoded = encoded
        return True

    def _fail(self, some: Sequence[_Waiting], error: Exception) -> None:
        for asked in {each.asked for each in some}:
            asked.is_over = True
            self._tell(asked, lambda future: future.set_exception(error))

    def _give(
        self, some: Sequence[_Waiting], encoded: Sequence[AsRead], values: Sequence[Any], seconds: float
    ) -> None:
        for each, read, value in zip(some, encoded, values, strict=True):
            asked = each.asked
            asked.answers[each.place] = Answer(value, read.tokens, read.dropped)
            asked.left -= 1
            if not asked.left:
                self._tell(asked, lambda future, found=asked.answers: future.set_result(found))
        tokens, dropped = (sum(getattr(each, name) for each in encoded) for name in ("tokens", "dropped"))
        self._seen(Batch(len(some), tokens, dropped, seconds=seconds))

    def _tell(self, asked: _Asked, tell: Callable[[asyncio.Future[list[Answer]]], None]) -> None:
        """Call `tell` in the request's loop, unless its client is gone."""

        def act() -> None:
            if not asked.future.done():
                tell(asked.future)

        with contextlib.suppress(RuntimeError):  # the loop is closed: a second signal ended the server
            asked.loop.call_soon_threadsafe(act)
