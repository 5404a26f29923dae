"""A stream of examples -> lists that fit into memory, long enough for batches of similar length."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TypeVar

import torch

from bertcli.errors import UserError
from bertcli.examples.examples import Example

BUFFERED_BATCHES = 64
"""Examples read ahead, in batches: enough for batches whose rows have nearly the same length."""
BUFFERED_CHARACTERS = 4_000_000
"""Limit of the text that is read ahead, so that long texts take no more memory than short ones."""

Some = TypeVar("Some", bound=Example)


def in_buffers(examples: Iterable[Some], batch_size: int) -> Iterator[list[Some]]:
    """The examples in lists that fill `BUFFERED_BATCHES` batches or hold `BUFFERED_CHARACTERS`.

    If `examples` raises a `UserError`, the examples before it come first.
    """
    buffer: list[Some] = []
    characters = 0
    try:
        for example in examples:
            buffer.append(example)
            characters += sum(map(len, example.texts))
            if len(buffer) == BUFFERED_BATCHES * batch_size or characters >= BUFFERED_CHARACTERS:
                yield buffer
                buffer, characters = [], 0
    except UserError:
        if buffer:
            yield buffer
        raise
    if buffer:
        yield buffer


def default_batch_size(device: torch.device) -> int:
    """The fastest number of rows in a batch: on a CPU small enough for its caches."""
    return 16 if device.type == "cpu" else 128
