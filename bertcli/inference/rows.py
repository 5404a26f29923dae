"""Computation on texts in batches of similar length, with the results in the order of the texts."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from typing import Protocol, TypeVar

from torch import Tensor

from bertcli.errors import UserError

BUFFERED_BATCHES = 16
"""Texts read ahead, in batches: enough for rows of similar length, and few enough for any memory."""


class HasLength(Protocol):
    """Anything that is put into batches by its length."""

    @property
    def length(self) -> int:
        """In tokens."""
        ...


Input = TypeVar("Input")
Encoded = TypeVar("Encoded", bound=HasLength)
Result = TypeVar("Result")


def only_numbers(outputs: Tensor) -> Tensor:
    """The same outputs of a model. Raises `UserError` where one is NaN or infinite."""
    if outputs.isfinite().all():
        return outputs
    raise UserError(
        "the model's answer is NaN or infinite: its weights are too large, so its sums overflow. The "
        "training diverged, or a file is damaged: give an earlier checkpoint, or copy the model again"
    )


def in_similar_lengths(
    inputs: Iterable[Input],
    batch_size: int,
    encode: Callable[[list[Input]], list[Encoded]],
    compute: Callable[[list[Encoded]], list[Result]],
) -> Iterator[tuple[Input, Result]]:
    """Each of `inputs`, in order, with its result, computed on batches of rows of similar length.

    At most `BUFFERED_BATCHES` batches are in memory at once.
    """
    stream = iter(inputs)
    while buffer := list(islice(stream, batch_size * BUFFERED_BATCHES)):
        yield from zip(buffer, by_length(encode(buffer), batch_size, compute), strict=True)


def by_length(
    rows: list[Encoded], batch_size: int, compute: Callable[[list[Encoded]], list[Result]]
) -> list[Result]:
    """The results of `rows` in their order, computed on batches of rows of similar length."""
    order = sorted(range(len(rows)), key=lambda i: rows[i].length)
    results: dict[int, Result] = {}
    for start in range(0, len(order), batch_size):
        chosen = order[start : start + batch_size]
        results.update(zip(chosen, compute([rows[i] for i in chosen]), strict=True))
    return [results[i] for i in range(len(rows))]
