"""Encoded texts -> tensors: rows of token ids, padded to the longest of their batch."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from bertcli.text.frame import Row


@dataclass(frozen=True)
class RowBatch:
    """Rows padded to the longest.

    Attributes:
        ids_BT: int64, padding from a row's length on.
        segments_BT: int64, as `text.frame.Frame` says.
        mask_BT: bool, True at real tokens, on the CPU; None where no row is padded.
    """

    ids_BT: Tensor
    segments_BT: Tensor
    mask_BT: Tensor | None


def batch_of(rows: Sequence[Row], pad_id: int, device: torch.device) -> RowBatch:
    """The rows as tensors on `device`."""
    lengths_B = torch.tensor([row.length for row in rows])
    longest = int(lengths_B.max())
    ids = [[*row.ids, *[pad_id] * (longest - row.length)] for row in rows]
    positions_T = torch.arange(longest)
    seconds_B = torch.tensor([row.second_starts for row in rows])
    mask_BT = positions_T < lengths_B[:, None]
    segments_BT = (positions_T >= seconds_B[:, None]) & mask_BT
    return RowBatch(
        torch.tensor(ids, device=device),
        segments_BT.long().to(device),
        None if bool(mask_BT.all()) else mask_BT,
    )
