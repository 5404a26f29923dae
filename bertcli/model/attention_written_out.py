"""Attention with its [T, T] matrices written out: for training on a CPU, up to a length, the fastest way."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor

from bertcli.model.dropout import draw, draws_itself
from bertcli.model.head_layout import HeadLayout
from bertcli.model.row_groups import RowGroup

_LONGEST = 512
"""Tokens a row up to which a CPU computes the [T, T] matrices whole: faster than in blocks, more memory."""

_AT_ONCE = 1 << 19
"""Scores that are computed at once: few enough to stay in the cache until they are probabilities."""


def is_written_out(hidden_BTD: Tensor) -> bool:
    """Whether `attend_written_out` is the faster way."""
    return torch.is_grad_enabled() and draws_itself(hidden_BTD) and hidden_BTD.shape[1] <= _LONGEST


def attend_in_groups(projected_RE: Tensor, groups: tuple[RowGroup, ...], dropout: float) -> Tensor:
    """`attend_written_out` of the groups' rows, one group after the other; 0 for padding that is packed."""
    sizes = [group.num_tokens for group in groups]
    padding = len(projected_RE) - sum(sizes)
    if len(groups) == 1 and not padding:
        return attend_written_out(projected_RE, groups[0].layout, groups[0].mask_B11T, dropout)
    *parts, _ = projected_RE.split([*sizes, padding])
    contexts = [
        attend_written_out(part_RE, group.layout, group.mask_B11T, dropout)
        for part_RE, group in zip(parts, groups, strict=True)
    ]
    return torch.cat([*contexts, contexts[0].new_zeros(padding, contexts[0].shape[1])])


def attend_written_out(
    projected_RE: Tensor, layout: HeadLayout, mask_B11T: Tensor | None, dropout: float
) -> Tensor:
    """`attention.attend_reference` from queries, keys and values side by side to context_RD."""
    return _Attend.apply(projected_RE, layout, None, None, mask_B11T, dropout)  # pyright: ignore[reportReturnType]


def attend_for_some(
    query_KD: Tensor,
    queries: HeadLayout,
    projected_RE: Tensor,
    layout: HeadLayout,
    mask_B11T: Tensor | None,
    dropout: float,
) -> Tensor:
    """As `attend_written_out` for the queries of K tokens alone, to context_KD.

    Args:
        queries: [K, D] <-> [B * N, W, H], where W is the most of them in one row.
        projected_RE, layout: of keys and values.
    """
    return _Attend.apply(projected_RE, layout, query_KD, queries, mask_B11T, dropout)  # pyright: ignore[reportReturnType]


def _probabilities(query_IWH: Tensor, key_ITH: Tensor, mask_B11T: Tensor | None, num_heads: int) -> Tensor:
    """-> probabilities_IWT, in the queries' dtype."""
    probabilities_IWT = query_IWH.new_empty(*query_IWH.shape[:2], key_ITH.shape[1])
    bias_B11T = None if mask_B11T is None else torch.where(mask_B11T, 0.0, -math.inf)
    rows = max(1, _AT_ONCE // probabilities_IWT[:num_heads].numel())
    for start in range(0, len(query_IWH) // num_heads, rows):
        heads = slice(start * num_heads, (start + rows) * num_heads)
        scores_IWT = _scores(query_IWH[heads], key_ITH[heads])
        if bias_B11T is not None:
            scores_IWT.unflatten(0, (-1, num_heads)).add_(bias_B11T[start : start + rows])
        probabilities_IWT[heads] = scores_IWT.softmax(dim=-1)
    return probabilities_IWT


def _scores(query_IWH: Tensor, key_ITH: Tensor) -> Tensor:
    """In fp32 at least: a score of 30 rounded to bf16 may be off by 0.06, and its probability by 6 %."""
    scores_IWT = query_IWH @ key_ITH.mT
    if scores_IWT.dtype.itemsize > 2:
        return scores_IWT
    # 16-bit products are summed in fp32 and rounded once: less what came out, the same sum is what that took.
    lost_IWT = torch.baddbmm(scores_IWT, query_IWH, key_ITH.mT, beta=-1)
    return scores_IWT.float().add_(lost_IWT)


class _Attend(torch.autograd.Function):
    """It and its derivatives in few passes over the [W, T] matrices (I rows in all heads; W is T for all).

    What scales the kept probabilities is put on the values, which are far fewer.
    """

    @staticmethod
    def forward(
        ctx: Any,
        projected_RE: Tensor,
        layout: HeadLayout,
        query_KD: Tensor | None,
        queries: HeadLayout | None,
        mask_B11T: Tensor | None,
        dropout: float,
    ) -> Tensor:
        heads_SITH = layout.split(projected_RE)
        key_ITH, value_ITH = heads_SITH[-2:]
        query_IWH = heads_SITH[0] if query_KD is None or queries is None else queries.split(query_KD)[0]
        query_IWH /= math.sqrt(query_IWH.shape[-1])
        probabilities_IWT = kept_IWT = _probabilities(query_IWH, key_ITH, mask_B11T, layout.shape[1])
        ctx.scale = 1.0
        if dropout:
            kept, ctx.scale = draw(probabilities_IWT, dropout)
            kept_IWT = probabilities_IWT * kept.to(probabilities_IWT.dtype)
            value_ITH *= ctx.scale
        context_IWH = kept_IWT @ value_ITH
        ctx.layout, ctx.queries = layout, queries
        ctx.save_for_backward(query_IWH, heads_SITH, probabilities_IWT, kept_IWT, context_IWH)
        return (queries or layout).join(context_IWH)

    @staticmethod
    def backward(ctx: Any, gradient_KD: Tensor) -> tuple[Tensor | None, ...]:  # pyright: ignore[reportIncompatibleMethodOverride]
        query_IWH, heads_SITH, probabilities_IWT, kept_IWT, context_IWH = ctx.saved_tensors
        key_ITH, value_ITH = heads_SITH[-2:]
        gradient_IWH = (ctx.queries or ctx.layout).unjoin(gradient_KD)
        # P * (dP - sum(P * dP)), where the sum is that of gradient * context (Dao et al. 2022, section 3.1).
        of_kept_IWT = (gradient_IWH @ value_ITH.mT).mul_(kept_IWT)
        sum_IW1 = (gradient_IWH * context_IWH).sum(-1, keepdim=True)
        of_scores_IWT = of_kept_IWT.addcmul_(probabilities_IWT, sum_IW1, value=-1.0)
        of_heads_SITH = torch.empty_like(heads_SITH)
        of_key_ITH, of_value_ITH = of_heads_SITH[-2:]
        of_query_IWH = torch.empty_like(query_IWH) if ctx.queries else of_heads_SITH[0]
        torch.bmm(of_scores_IWT, key_ITH, out=of_query_IWH)
        torch.bmm(of_scores_IWT.mT, query_IWH, out=of_key_ITH)
        torch.bmm(kept_IWT.mT, gradient_IWH, out=of_value_ITH)
        of_query_IWH /= math.sqrt(query_IWH.shape[-1])
        of_value_ITH *= ctx.scale
        of_query_KD = ctx.queries.unsplit(of_query_IWH[None]) if ctx.queries else None
        return ctx.layout.unsplit(of_heads_SITH), None, of_query_KD, None, None, None
