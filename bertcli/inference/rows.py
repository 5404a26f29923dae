"""Work on texts in batches of like length, with the results in the order in which the texts came."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from typing import Protocol, TypeVar

BUFFERED_BATCHES = 16
"""Texts read ahead, in batches: enough for rows of like length, and few enough for any memory."""


class HasLength(Protocol):
    """Something to be put into batches by its length."""

    @property
    def length(self) -> int:
        """In tokens."""
        ...


Input = TypeVar("Input")
Encoded = TypeVar("Encoded", bound=HasLength)
Result = TypeVar("Result")


def in_like_lengths(
    inputs: Iterable[Input],
    batch_size: int,
    encode: Callable[[list[Input]], list[Encoded]],
    compute: Callable[[list[Encoded]], list[Result]],
) -> Iterator[Result]:
    """The results of `inputs` in their order, computed on batches of rows of like length.

    No more than `BUFFERED_BATCHES` batches are held at once, whatever the length of `inputs`.
    """
    stream = iter(inputs)
    while buffer := list(islice(stream, batch_size * BUFFERED_BATCHES)):
        yield from by_length(encode(buffer), batch_size, compute)


def by_length(
    rows: list[Encoded], batch_size: int, compute: Callable[[list[Encoded]], list[Result]]
) -> list[Result]:
    """The results of `rows` in their order, computed on batches of rows of like length."""
    order = sorted(range(len(rows)), key=lambda i: rows[i].length)
    results: dict[int, Result] = {}
    for start in range(0, len(order), batch_size):
        chosen = order[start : start + batch_size]
        results.update(zip(chosen, compute([rows[i] for i in chosen]), strict=True))
    return [results[i] for i in range(len(rows))]
