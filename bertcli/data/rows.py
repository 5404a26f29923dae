"""Encoded texts -> tensors: rows of token ids, filled up to the longest of their batch."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True, slots=True)
class Row:
    """What the model reads at once: `[CLS] A [SEP]` or `[CLS] A [SEP] B [SEP]`."""

    ids: Sequence[int]
    second_starts: int
    """Where segment 1 begins; the row's length where there is none."""

    @property
    def length(self) -> int:
        """In tokens."""
        return len(self.ids)


@dataclass(frozen=True)
class RowBatch:
    """Rows filled up to the longest.

    Attributes:
        ids_BT: int64, [PAD] from a row's length on.
        segments_BT: int64, 0 for A and 1 for B and the [SEP] after it.
        mask_BT: bool, True at real tokens, on the CPU; None where no row is padded.
    """

    ids_BT: Tensor
    segments_BT: Tensor
    mask_BT: Tensor | None


def single(ids: Sequence[int], cls_id: int, sep_id: int) -> Row:
    """`[CLS] ids [SEP]`, all of it segment 0."""
    return Row([cls_id, *ids, sep_id], len(ids) + 2)


def pair(a: Sequence[int], b: Sequence[int], cls_id: int, sep_id: int) -> Row:
    """`[CLS] a [SEP] b [SEP]`, segment 1 from b on."""
    return Row([cls_id, *a, sep_id, *b, sep_id], len(a) + 2)


def batch_of(rows: Sequence[Row], pad_id: int, device: torch.device) -> RowBatch:
    """The rows as tensors on `device`."""
    lengths_B = torch.tensor([len(row.ids) for row in rows])
    longest = int(lengths_B.max())
    ids = [[*row.ids, *[pad_id] * (longest - len(row.ids))] for row in rows]
    positions_T = torch.arange(longest)
    seconds_B = torch.tensor([row.second_starts for row in rows])
    mask_BT = positions_T < lengths_B[:, None]
    segments_BT = (positions_T >= seconds_B[:, None]) & mask_BT
    return RowBatch(
        torch.tensor(ids, device=device),
        segments_BT.long().to(device),
        None if bool(mask_BT.all()) else mask_BT,
    )
