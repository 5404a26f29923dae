"""Endless examples -> stretches of them that fit into memory, long enough for batches of like length."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TypeVar

import torch

from bertcli.errors import UserError
from bertcli.examples.examples import Example

BUFFERED_BATCHES = 64
"""Examples read ahead, in batches: enough for rows of nearly one length in each."""
BUFFERED_CHARACTERS = 4_000_000
"""Of text read ahead, after which no more is, so that long texts take no more memory than many."""

Some = TypeVar("Some", bound=Example)


def in_buffers(examples: Iterable[Some], batch_size: int) -> Iterator[list[Some]]:
    """The examples in stretches that fill `BUFFERED_BATCHES` batches or hold `BUFFERED_CHARACTERS`.

    Where `examples` ends in a `UserError`, all that came before are given first.
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
    """Rows at once that are fastest: on a CPU few enough for its caches."""
    return 16 if device.type == "cpu" else 128
