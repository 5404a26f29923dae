"""Attention with its [T, T] matrices written out: for training on a CPU, up to a length, the fastest way."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor

from bertcli.model.dropout import draw, draws_itself
from bertcli.model.head_layout import HeadLayout

_LONGEST = 512
"""Tokens a row up to which a CPU computes the [T, T] matrices whole: faster than in blocks, more memory."""


def is_written_out(hidden_BTD: Tensor) -> bool:
    """Whether `attend_written_out` is the faster way."""
    return torch.is_grad_enabled() and draws_itself(hidden_BTD) and hidden_BTD.shape[1] <= _LONGEST


def attend_written_out(
    projected_RE: Tensor, layout: HeadLayout, mask_B11T: Tensor | None, dropout: float
) -> Tensor:
    """`attention.attend_reference` from queries, keys and values side by side to context_RD."""
    return _Attend.apply(projected_RE, layout, mask_B11T, dropout)  # pyright: ignore[reportReturnType]


class _Attend(torch.autograd.Function):
    """It and its derivatives in few passes over the [T, T] matrices (I rows in all heads).

    What scales the kept probabilities is put on the values, which are far fewer.
    """

    @staticmethod
    def forward(
        ctx: Any, projected_RE: Tensor, layout: HeadLayout, mask_B11T: Tensor | None, dropout: float
    ) -> Tensor:
        heads_3ITH = layout.split(projected_RE)
        query_ITH, key_ITH, value_ITH = heads_3ITH
        query_ITH /= math.sqrt(query_ITH.shape[-1])
        scores_ITT = query_ITH @ key_ITH.mT
        if mask_B11T is not None:
            bias_B11T = torch.zeros_like(mask_B11T, dtype=query_ITH.dtype).masked_fill_(~mask_B11T, -math.inf)
            scores_ITT.unflatten(0, layout.shape[:2]).add_(bias_B11T)
        probabilities_ITT = kept_ITT = scores_ITT.softmax(dim=-1)
        ctx.scale = 1.0
        if dropout:
            kept, ctx.scale = draw(probabilities_ITT, dropout)
            kept_ITT = probabilities_ITT * kept.to(probabilities_ITT.dtype)
            value_ITH *= ctx.scale
        context_ITH = kept_ITT @ value_ITH
        ctx.layout = layout
        ctx.save_for_backward(heads_3ITH, probabilities_ITT, kept_ITT, context_ITH)
        return layout.join(context_ITH)

    @staticmethod
    def backward(ctx: Any, gradient_RD: Tensor) -> tuple[Tensor, None, None, None]:  # pyright: ignore[reportIncompatibleMethodOverride]
        heads_3ITH, probabilities_ITT, kept_ITT, context_ITH = ctx.saved_tensors
        query_ITH, key_ITH, value_ITH = heads_3ITH
        gradient_ITH = ctx.layout.unjoin(gradient_RD)
        # P * (dP - sum(P * dP)), where the sum is that of gradient * context (Dao et al. 2022, section 3.1).
        of_kept_ITT = (gradient_ITH @ value_ITH.mT).mul_(kept_ITT)
        sum_IT1 = (gradient_ITH * context_ITH).sum(-1, keepdim=True)
        of_scores_ITT = of_kept_ITT.addcmul_(probabilities_ITT, sum_IT1, value=-1.0)
        of_heads_3ITH = torch.empty_like(heads_3ITH)
        of_query_ITH, of_key_ITH, of_value_ITH = of_heads_3ITH
        torch.bmm(of_scores_ITT, key_ITH, out=of_query_ITH)
        torch.bmm(of_scores_ITT.mT, query_ITH, out=of_key_ITH)
        torch.bmm(kept_ITT.mT, gradient_ITH, out=of_value_ITH)
        of_query_ITH /= math.sqrt(query_ITH.shape[-1])
        of_value_ITH *= ctx.scale
        return ctx.layout.unsplit(of_heads_3ITH), None, None, None
