"""Attention to a window, block by block: replaces `rotary.attend_window` for rows of several windows."""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from bertcli.model.fast.attention import attend
from bertcli.model.fast.switch import is_on


def is_faster(query_BNTH: Tensor, *others: Any, window: int, **named: Any) -> bool:
    """Whether the row is longer than the keys of a block."""
    return is_on("window") and query_BNTH.shape[2] > 4 * window


def attend_window(
    query_BNTH: Tensor,
    key_BNTH: Tensor,
    value_BNTH: Tensor,
    mask_B11T: Tensor | None,
    window: int,
    dropout: float,
) -> Tensor:
    """As `rotary.attend_window`; memory grows with the row's length, not with its square.

    A row is cut into C blocks of 2 * `window` queries. A block reads S = 4 * `window` keys: its own and
    `window` more to each side.
    """
    batch, _, length, _ = query_BNTH.shape
    size = 2 * window
    blocks = -(-length // size)
    behind = blocks * size - length
    query_CNQH = _fold(F.pad(query_BNTH, (0, 0, 0, behind)).unflatten(2, (blocks, size)))
    key_CNSH, value_CNSH = (
        _fold(F.pad(each, (0, 0, window, window + behind)).unfold(2, 2 * size, size).transpose(-1, -2))
        for each in (key_BNTH, value_BNTH)
    )
    real_BT = query_BNTH.new_ones(batch, length, dtype=torch.bool)
    real_BT = real_BT if mask_B11T is None else mask_B11T[:, 0, 0]
    real_CS = F.pad(real_BT, (window, window + behind)).unfold(1, 2 * size, size).flatten(0, 1)
    queries_Q = torch.arange(size, device=query_BNTH.device)
    distance_QS = torch.arange(2 * size, device=query_BNTH.device) - window - queries_Q[:, None]
    mask_C1QS = (real_CS[:, None, None] & (distance_QS.abs() <= window)) | (distance_QS == 0)
    context_CNQH = attend(query_CNQH, key_CNSH, value_CNSH, mask_B11T=mask_C1QS, dropout=dropout)
    context_BNTH = context_CNQH.unflatten(0, (batch, blocks)).transpose(1, 2).flatten(2, 3)
    return context_BNTH[:, :, :length]


def _fold(values_BNCSH: Tensor) -> Tensor:
    """-> [B * C, N, S, H]: each block as a row of its own."""
    return values_BNCSH.transpose(1, 2).flatten(0, 1)
