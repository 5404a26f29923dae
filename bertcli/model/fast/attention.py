"""Faster attention. `attend` replaces `layer.attend` by torch's kernels, or by explicit matrices for training
on a CPU. `attend_window` replaces `rotary.attend_window`, block by block, for rows of several windows."""

import math
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from bertcli.model import layer, rotary
from bertcli.model.fast.dropout import draw
from bertcli.model.seam import is_on, is_on_cpu, replace

_LONGEST = 512
"""The most tokens of a row for which a CPU keeps the [T, T] matrices: faster than blocks, but more memory."""

_AT_ONCE = 1 << 19
"""The number of scores computed at once; they must stay in the cache until they are probabilities."""


def attend(
    query_BNWH: Tensor, key_BNTH: Tensor, value_BNTH: Tensor, mask_B11T: Tensor | None, dropout: float
) -> Tensor:
    """Attention softmax(Q K^T / sqrt(H)) V -> [B, N, W, H], with W queries per row, possibly fewer than T."""
    if is_written_out(key_BNTH):
        inputs = query_BNWH, key_BNTH, value_BNTH, mask_B11T, dropout
        return _Attend.apply(*inputs)  # pyright: ignore[reportReturnType]
    return F.scaled_dot_product_attention(
        query_BNWH, key_BNTH, value_BNTH, attn_mask=mask_B11T, dropout_p=dropout
    )


def is_written_out(values: Tensor) -> bool:
    """True if these [..., T, H] get explicit matrices: the backward pass of torch's own kernel is slow."""
    return torch.is_grad_enabled() and is_on_cpu("written_out", values) and values.shape[-2] <= _LONGEST


def _probabilities(query_IWH: Tensor, key_ITH: Tensor, mask_B11T: Tensor | None, num_heads: int) -> Tensor:
    """The probabilities_IWT, in the queries' dtype."""
    probabilities_IWT = query_IWH.new_empty(*query_IWH.shape[:2], key_ITH.shape[1])
    bias_B11T = None if mask_B11T is None else torch.where(mask_B11T, 0.0, -math.inf)
    rows = max(1, _AT_ONCE // probabilities_IWT[:num_heads].numel())
    for start in range(0, len(query_IWH) // num_heads, rows):
        heads = slice(start * num_heads, (start + rows) * num_heads)
        scores_IWT = _scores(query_IWH[heads], key_ITH[heads])
        if bias_B11T is not None:
            of_rows = bias_B11T[start : start + rows] if len(bias_B11T) > 1 else bias_B11T
            scores_IWT.unflatten(0, (-1, num_heads)).add_(of_rows)
        probabilities_IWT[heads] = scores_IWT.softmax(dim=-1)
    return probabilities_IWT


def _scores(query_IWH: Tensor, key_ITH: Tensor) -> Tensor:
    """The scores in at least fp32: a score of 30 in bf16 may be wrong by 0.06, and its probability by 6 %."""
    scores_IWT = query_IWH @ key_ITH.mT
    if scores_IWT.dtype.itemsize > 2:
        return scores_IWT
    # 16-bit products are summed in fp32 and rounded once. Recomputing with beta = -1 gives the rounding
    # error, which is added back in fp32.
    error_IWT = torch.baddbmm(scores_IWT, query_IWH, key_ITH.mT, beta=-1)
    return scores_IWT.float().add_(error_IWT)


class _Attend(torch.autograd.Function):
    """Attention and its derivatives in few passes over the [W, T] matrices; I = B * N (rows and heads).

    The scale of dropout is applied to the values instead of the kept probabilities, which are far more.
    """

    @staticmethod
    def forward(
        ctx: Any,
        query_BNWH: Tensor,
        key_BNTH: Tensor,
        value_BNTH: Tensor,
        mask_B11T: Tensor | None,
        dropout: float,
    ) -> Tensor:
        query_IWH = _copy(query_BNWH).div_(math.sqrt(query_BNWH.shape[-1]))
        key_ITH, value_ITH = key_BNTH.flatten(0, 1), _copy(value_BNTH)
        probabilities_IWT = kept_IWT = _probabilities(
            query_IWH, key_ITH, mask_B11T, num_heads=query_BNWH.shape[1]
        )
        ctx.scale = 1.0
        if dropout:
            kept, ctx.scale = draw(probabilities_IWT, dropout)
            kept_IWT = probabilities_IWT * kept.to(probabilities_IWT.dtype)
            value_ITH *= ctx.scale
        context_IWH = kept_IWT @ value_ITH
        ctx.save_for_backward(query_IWH, key_ITH, value_ITH, probabilities_IWT, kept_IWT, context_IWH)
        return context_IWH.view(query_BNWH.shape)

    @staticmethod
    def backward(ctx: Any, gradient_BNWH: Tensor) -> tuple[Tensor | None, ...]:  # pyright: ignore[reportIncompatibleMethodOverride]
        query_IWH, key_ITH, value_ITH, probabilities_IWT, kept_IWT, context_IWH = ctx.saved_tensors
        rows_heads, gradient_IWH = gradient_BNWH.shape[:2], gradient_BNWH.flatten(0, 1)
        # P * (dP - sum(P * dP)); the sum equals that of gradient * context (Dao et al. 2022, section 3.1).
        of_kept_IWT = (gradient_IWH @ value_ITH.mT).mul_(kept_IWT)
        sum_IW1 = (gradient_IWH * context_IWH).sum(-1, keepdim=True)
        of_scores_IWT = of_kept_IWT.addcmul_(probabilities_IWT, sum_IW1, value=-1.0)
        of_query_IWH = (of_scores_IWT @ key_ITH).div_(math.sqrt(query_IWH.shape[-1]))
        of_key_ITH = of_scores_IWT.mT @ query_IWH
        of_value_ITH = (kept_IWT.mT @ gradient_IWH).mul_(ctx.scale)
        return *(of.unflatten(0, rows_heads) for of in (of_query_IWH, of_key_ITH, of_value_ITH)), None, None


def _copy(values_BNTH: Tensor) -> Tensor:
    """Reshape [B, N, T, H] -> [I, T, H], always with a copy, because the result is written to."""
    return values_BNTH.clone(memory_format=torch.contiguous_format).flatten(0, 1)


def is_faster(query_BNTH: Tensor, *others: Any, window: int, **named: Any) -> bool:
    """True if the row is longer than the keys of a block."""
    return is_on("window") and query_BNTH.shape[2] > 4 * window


def attend_window(
    query_BNTH: Tensor,
    key_BNTH: Tensor,
    value_BNTH: Tensor,
    mask_B11T: Tensor | None,
    window: int,
    dropout: float,
) -> Tensor:
    """Compute `rotary.attend_window` with memory that grows with the row's length, not with its square.

    A row is cut into C blocks of 2 * `window` queries. A block reads S = 4 * `window` keys: its own and
    `window` more on each side.
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
    """Make each block a row of its own: [B, N, C, S, H] -> [B * C, N, S, H]."""
    return values_BNCSH.transpose(1, 2).flatten(0, 1)


replace(layer.attend, attend, when=lambda *_, **named: is_on("attention"))
replace(rotary.attend_window, attend_window, when=is_faster)
