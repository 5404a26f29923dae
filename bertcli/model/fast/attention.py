"""Attention by torch's kernels, or for training on a CPU with explicit matrices: replaces
`attention.attend`."""

from __future__ import annotations

import math
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from bertcli.model.fast.dropout import draw
from bertcli.model.fast.switch import is_on_cpu

_LONGEST = 512
"""Tokens in a row up to which a CPU keeps the [T, T] matrices: faster than in blocks, more memory."""

_AT_ONCE = 1 << 19
"""Scores that are computed at once: they must stay in the cache until they are probabilities."""


def attend(
    query_BNWH: Tensor, key_BNTH: Tensor, value_BNTH: Tensor, mask_B11T: Tensor | None, dropout: float
) -> Tensor:
    """softmax(Q K^T / sqrt(H)) V -> [B, N, W, H], with W queries in a row, which may be fewer than T."""
    if is_written_out(key_BNTH):
        inputs = query_BNWH, key_BNTH, value_BNTH, mask_B11T, dropout
        return _Attend.apply(*inputs)  # pyright: ignore[reportReturnType]
    return F.scaled_dot_product_attention(
        query_BNWH, key_BNTH, value_BNTH, attn_mask=mask_B11T, dropout_p=dropout
    )


def is_written_out(values: Tensor) -> bool:
    """Whether the matrices are explicit for these [..., T, H]: torch's own kernel has a slow backward."""
    return torch.is_grad_enabled() and is_on_cpu("written_out", values) and values.shape[-2] <= _LONGEST


def _probabilities(query_IWH: Tensor, key_ITH: Tensor, mask_B11T: Tensor | None, num_heads: int) -> Tensor:
    """-> probabilities_IWT, in the queries' dtype."""
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
    """In fp32 at least: a score of 30 in bf16 may have an error of 0.06, and its probability one of 6 %."""
    scores_IWT = query_IWH @ key_ITH.mT
    if scores_IWT.dtype.itemsize > 2:
        return scores_IWT
    # 16-bit products are summed in fp32 and rounded once. Recomputing with beta = -1 gives the rounding
    # error, which is added back in fp32.
    error_IWT = torch.baddbmm(scores_IWT, query_IWH, key_ITH.mT, beta=-1)
    return scores_IWT.float().add_(error_IWT)


class _Attend(torch.autograd.Function):
    """Attention and its derivatives in few passes over the [W, T] matrices; I = B * N (rows and heads).

    Instead of the kept probabilities, the values are scaled, which are far fewer.
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
    """[B, N, T, H] -> [I, T, H], always a copy, because it is written to."""
    return values_BNTH.clone(memory_format=torch.contiguous_format).flatten(0, 1)
