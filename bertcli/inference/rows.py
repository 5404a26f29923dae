"""Encoded texts -> batches of rows of like length, and back into the order in which they came."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Protocol, TypeVar

import torch
from torch import Tensor

BUFFERED_BATCHES = 16
"""Texts read ahead, in batches: enough for rows of like length, and few enough for any memory."""


@dataclass(frozen=True)
class RowBatch:
    """Rows filled up to the longest: `ids_BT`, `segments_BT` (int64) and `mask_BT` (bool, True at tokens)."""

    ids_BT: Tensor
    segments_BT: Tensor
    mask_BT: Tensor


class Row(Protocol):
    @property
    def ids(self) -> Sequence[int]:
        """With [CLS] and [SEP]."""
        ...

    @property
    def second_starts(self) -> int:
        """Where segment 1 begins; the row's length where there is none."""
        ...


Input = TypeVar("Input")
Encoded = TypeVar("Encoded", bound=Row)
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
        rows = encode(buffer)
        order = sorted(range(len(rows)), key=lambda i: len(rows[i].ids))
        results: dict[int, Result] = {}
        for start in range(0, len(order), batch_size):
            chosen = order[start : start + batch_size]
            results.update(zip(chosen, compute([rows[i] for i in chosen]), strict=True))
        yield from (results[i] for i in range(len(rows)))


def batch_of(rows: Sequence[Row], pad_id: int, device: torch.device) -> RowBatch:
    """The rows as tensors on `device`."""
    longest = max(len(row.ids) for row in rows)
    ids = [[*row.ids, *[pad_id] * (longest - len(row.ids))] for row in rows]
    positions_T = torch.arange(longest)
    lengths_B = torch.tensor([len(row.ids) for row in rows])
    seconds_B = torch.tensor([row.second_starts for row in rows])
    mask_BT = positions_T < lengths_B[:, None]
    segments_BT = (positions_T >= seconds_B[:, None]) & mask_BT
    return RowBatch(torch.tensor(ids, device=device), segments_BT.long().to(device), mask_BT.to(device))
