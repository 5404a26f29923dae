"""What waits is computed together, by tokens, the longest waiting first; errors and clients that leave."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Coroutine, Generator, Iterator, Sequence
from typing import Any

import pytest

from bertcli.inference.attributions import InParts, Work
from bertcli.inference.predict import Answers, AsRead
from bertcli.inference.serve import queue as queues
from bertcli.inference.serve.queue import Answer, Batch, Failed, Overloaded, Queue, TooLong
from bertcli.system.errors import UserError


class Panic(BaseException):
    """An error that is no `Exception`, as one of Rust."""


class Echo(Answers):
    """Answers each number with itself; it has as many tokens. The first batch waits for `go`."""

    def __init__(self, together: bool = True) -> None:
        self.together, self.go, self.batches = together, threading.Event(), list[list[int]]()

    def encode(self, question: int) -> AsRead:
        if question < 0:
            raise UserError(f"{question} is below 0")
        if question == 13:
            raise Panic
        return AsRead(question, question, dropped=max(0, question - 50))

    def compute(self, several: Sequence[AsRead]) -> list[int]:
        self.go.wait(timeout=30)
        found = [each.content for each in several]
        self.batches.append(found)
        if 99 in found:
            raise MemoryError
        return found


def run(ask: Callable[[Queue], Coroutine[Any, Any, Any]], **named: Any) -> Any:
    """The result of a coroutine with a queue of batches of 10 tokens."""
    queue = Queue(10, **named)
    try:
        return asyncio.run(ask(queue))
    finally:
        queue.close()


async def begun(answers: Echo, queue: Queue, number: int = 1) -> asyncio.Task[list[Answer]]:
    """A request of one number that is being computed until `answers.go` is set."""
    task = asyncio.create_task(queue.ask(answers, [number]))
    await asyncio.sleep(0)
    while queue.waiting:
        await asyncio.sleep(0.001)
    return task


def values(found: Sequence[Answer]) -> list[int]:
    return [each.value for each in found]


def test_requests_that_wait_are_computed_together_up_to_the_tokens() -> None:
    answers, seen = Echo(), list[Batch]()

    async def ask(queue: Queue) -> list[list[Answer]]:
        first = await begun(answers, queue)
        others = [asyncio.create_task(queue.ask(answers, some)) for some in ([4, 5], [2], [3, 8])]
        await asyncio.sleep(0)
        answers.go.set()
        return await asyncio.gather(first, *others)

    found = run(ask, seen=seen.append)
    assert list(map(values, found)) == [[1], [4, 5], [2], [3, 8]]
    assert answers.batches == [[1], [4, 5], [2, 3], [8]]
    assert [(batch.texts, batch.tokens) for batch in seen] == [(1, 1), (2, 9), (2, 5), (1, 8)]


def test_a_text_longer_than_a_batch_is_computed_alone() -> None:
    answers = Echo()
    answers.go.set()
    assert values(run(lambda queue: queue.ask(answers, [40, 1]))) == [40, 1]
    assert answers.batches == [[40], [1]]


class Parted(Echo):
    """A number with more tokens than a batch is computed in parts of ten; 99 fails in its second part."""

    def in_parts(self, question: AsRead, tokens: int) -> Iterator[list[int]]:
        for done in range(tokens, question.content, tokens):
            self.batches.append([-done])
            yield []
            if question.content == 99:
                raise MemoryError
        yield [question.content]


def test_others_are_answered_between_two_parts_of_a_long_text() -> None:
    answers, seen = Parted(), list[Batch]()

    async def ask(queue: Queue) -> list[Any]:
        first = await begun(answers, queue)
        some = ([30], [2], [99], [30], [9, 9])
        others = [asyncio.create_task(queue.ask(answers, numbers)) for numbers in some]
        await asyncio.sleep(0)
        others[3].cancel()
        await asyncio.sleep(0)
        answers.go.set()
        return await asyncio.gather(first, *others, return_exceptions=True)

    _, long, short, failed, gone, last = run(ask, seen=seen.append)
    assert (values(long), values(short), values(last)) == ([30], [2], [9, 9])
    assert (type(failed), type(gone)) == (Failed, asyncio.CancelledError)
    assert answers.batches == [[1], [-10], [2], [-20], [9], [-10], [9]]
    assert [batch.tokens for batch in seen] == [1, 2, 30, 9, 9]


def test_the_kind_of_answer_that_waits_longest_comes_first() -> None:
    one, other = Echo(), Echo()
    other.go.set()
    order: list[str] = []

    async def ask(queue: Queue) -> None:
        tasks = [await begun(one, queue)]
        for name, answers in (("other", other), ("one", one), ("other again", other)):
            task = asyncio.create_task(queue.ask(answers, [2]))
            task.add_done_callback(lambda _, name=name: order.append(name))
            tasks.append(task)
            await asyncio.sleep(0.002)
        one.go.set()
        await asyncio.gather(*tasks)

    run(ask)
    assert order == ["other", "other again", "one"]  # the two of one kind are computed together


def test_answers_that_depend_on_their_batch_are_computed_alone() -> None:
    answers = Echo(together=False)
    answers.go.set()
    run(lambda queue: queue.ask(answers, [1, 2, 3]))
    assert answers.batches == [[1], [2], [3]]


def test_a_text_that_cannot_be_read_fails_its_own_request_alone() -> None:
    answers = Echo()

    async def ask(queue: Queue) -> list[Any]:
        first = await begun(answers, queue)
        others = [asyncio.create_task(queue.ask(answers, some)) for some in ([2, -1, 3], [4])]
        await asyncio.sleep(0)
        answers.go.set()
        return await asyncio.gather(first, *others, return_exceptions=True)

    first, failed, other = run(ask)
    assert (values(first), values(other), str(failed)) == ([1], [4], "-1 is below 0")
    assert isinstance(failed, UserError)


def test_a_client_that_leaves_costs_no_computation_that_has_not_begun() -> None:
    answers = Echo()

    async def ask(queue: Queue) -> None:
        first = await begun(answers, queue)
        gone = asyncio.create_task(queue.ask(answers, [2, 3]))
        stays = asyncio.create_task(queue.ask(answers, [4]))
        await asyncio.sleep(0)
        gone.cancel()
        await asyncio.sleep(0)
        answers.go.set()
        await asyncio.gather(first, stays)

    run(ask)
    assert answers.batches == [[1], [4]]


def test_a_full_queue_refuses_until_there_is_room(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(queues, "MOST_WAITING", 3)
    answers = Echo()

    async def ask(queue: Queue) -> None:
        first = await begun(answers, queue)
        second = asyncio.create_task(queue.ask(answers, [1, 2]))
        await asyncio.sleep(0)
        with pytest.raises(Overloaded) as refused:
            await queue.ask(answers, [1, 2])
        assert refused.value.seconds == 1
        second.cancel()
        await asyncio.sleep(0)
        third = asyncio.create_task(queue.ask(answers, [5, 5]))
        await asyncio.sleep(0)
        answers.go.set()
        assert values(await third) == [5, 5]
        await first
        with pytest.raises(UserError, match="4 texts in one request; send at most 3"):
            await queue.ask(answers, [1] * 4)

    run(ask)


def test_texts_that_would_be_cut_are_refused_where_they_must_be_whole() -> None:
    answers = Echo()
    answers.go.set()
    with pytest.raises(TooLong, match=r"text 2: 70 tokens, of which the model reads 60; shorten it$"):
        run(lambda queue: queue.ask(answers, [1, 60], uncut="shorten it"))
    (answer,) = run(lambda queue: queue.ask(answers, [60]))
    assert answer == Answer(60, tokens=60, dropped=10)


@pytest.mark.parametrize("number", [99, 13])
def test_an_error_of_the_machine_fails_a_batch_and_the_next_one_is_computed(number: int) -> None:
    answers, errors = Echo(), list[BaseException]()
    answers.go.set()

    async def ask(queue: Queue) -> list[Answer]:
        with pytest.raises(Failed):
            await queue.ask(answers, [number])
        return await queue.ask(answers, [2])

    assert values(run(ask, failed=errors.append)) == [2]
    assert [type(error) for error in errors] == [MemoryError if number == 99 else Panic]


def test_a_text_that_fails_a_batch_fails_alone() -> None:
    answers, errors = Echo(), list[BaseException]()

    async def ask(queue: Queue) -> list[Any]:
        first = await begun(answers, queue)
        others = [asyncio.create_task(queue.ask(answers, [number])) for number in (2, 99, 3)]
        await asyncio.sleep(0)
        answers.go.set()
        return await asyncio.gather(first, *others, return_exceptions=True)

    _, two, failed, three = run(ask, failed=errors.append)
    assert (values(two), values(three), type(failed)) == ([2], [3], Failed)
    assert [type(error) for error in errors] == [MemoryError]


def test_no_question_has_no_answer() -> None:
    assert run(lambda queue: queue.ask(Echo(), [])) == []


def test_others_are_answered_between_two_parts_of_a_long_computation() -> None:
    done, seen = list[str](), list[Batch]()

    def long(name: str) -> Generator[int, None, str]:
        for number in range(3):
            yield 5
            done.append(f"{name}{number}")
        return name

    async def ask(queue: Queue) -> list[Any]:
        in_parts, works = InParts(), [Work(long("a")), Work(long("b"))]

        async def complete(work: Work) -> Any:
            while work.made is None:
                await queue.ask(in_parts, [work])
            return work.made

        return await asyncio.gather(*map(complete, works))

    assert run(ask, seen=seen.append) == ["a", "b"]
    assert done == ["a0", "b0", "a1", "b1", "a2", "b2"]
    assert {(each.texts, each.tokens) for each in seen} == {(1, 5)}


def test_a_long_computation_that_cannot_read_its_question_is_the_users_error() -> None:
    def long() -> Generator[int, None, str]:
        raise UserError("too long")
        yield 1

    with pytest.raises(UserError, match="too long"):
        run(lambda queue: queue.ask(InParts(), [Work(long())]))
