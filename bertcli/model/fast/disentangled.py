"""Disentangled attention in blocks that stay in the cache: replaces `disentangled.attend` on a CPU.

A score's index into the positions depends on i - j alone. So the wanted [T, T] scores of positions are a
diagonal view (`_diagonal`) of the product with the positions of all distances, and nothing is gathered.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, NamedTuple

import torch
from torch import Tensor

from bertcli.model.fast.dropout import draw

_AT_ONCE = 1 << 19
"""Scores that are computed at once: they must stay in the cache until they are probabilities."""


class _Block(NamedTuple):
    """The rows of the batch and the heads that are computed at once, r and n of them."""

    rows: slice
    heads: slice

    def of(self, values_BNTH: Tensor) -> Tensor:
        """-> [n, r, T, H], contiguous."""
        return values_BNTH[self.rows, self.heads].transpose(0, 1).contiguous()


def attend(
    query_BNTH: Tensor,
    key_BNTH: Tensor,
    value_BNTH: Tensor,
    position_key_NEH: Tensor | None,
    position_query_NEH: Tensor | None,
    mask_B11T: Tensor | None,
    dropout: float,
) -> Tensor:
    """As `disentangled.attend`."""
    inputs = query_BNTH, key_BNTH, value_BNTH, position_key_NEH, position_query_NEH, mask_B11T, dropout
    return _Attend.apply(*inputs)  # pyright: ignore[reportReturnType]


def _blocks(shape: torch.Size) -> Iterator[_Block]:
    """Of [B, N, T, H]."""
    num_rows, num_heads, length, _ = shape
    heads = max(1, min(num_heads, _AT_ONCE // length**2))
    rows = max(1, _AT_ONCE // (num_heads * length**2))
    for row in range(0, num_rows, rows):
        for head in range(0, num_heads, heads):
            yield _Block(slice(row, row + rows), slice(head, head + heads))


def _diagonal(by_distance_nrTE: Tensor) -> Tensor:
    """The view [n, r, T, T] whose element (i, j) is that of row i at the distance T - 1 + j - i."""
    heads, rows, length, distances = by_distance_nrTE.shape
    strides = rows * length * distances, length * distances, distances - 1, 1
    first = by_distance_nrTE.storage_offset() + length - 1
    return by_distance_nrTE.as_strided((heads, rows, length, length), strides, first)


def _by_distance(values_nrTH: Tensor, positions_nEH: Tensor) -> Tensor:
    """The products of each token with the positions of all distances: [n, r, T, E]."""
    return (values_nrTH.flatten(1, 2) @ positions_nEH.mT).unflatten(1, values_nrTH.shape[1:3])


def _probabilities(
    query_nrTH: Tensor,
    key_nrTH: Tensor,
    position_key_nEH: Tensor | None,
    position_query_nEH: Tensor | None,
    mask_r1T: Tensor | None,
) -> Tensor:
    """-> [n, r, T, T]. In fp32 at least, as in `fast.attention`.

    `position_key_nEH` by the distances j - i, `position_query_nEH` by i - j.
    """
    scores_nrTT = query_nrTH @ key_nrTH.mT
    if position_key_nEH is not None:
        scores_nrTT += _diagonal(_by_distance(query_nrTH, position_key_nEH))
    if position_query_nEH is not None:
        scores_nrTT += _diagonal(_by_distance(key_nrTH, position_query_nEH)).mT
    if mask_r1T is not None:
        scores_nrTT.masked_fill_(~mask_r1T, -math.inf)
    return scores_nrTT.softmax(dim=-1)


class _Attend(torch.autograd.Function):
    """Kept for the backward pass: one [T, T] matrix for each head, of probabilities that are negative where
    they were dropped; and the inputs."""

    @staticmethod
    def forward(
        ctx: Any,
        query_BNTH: Tensor,
        key_BNTH: Tensor,
        value_BNTH: Tensor,
        position_key_NEH: Tensor | None,
        position_query_NEH: Tensor | None,
        mask_B11T: Tensor | None,
        dropout: float,
    ) -> Tensor:
        dtype, exact = query_BNTH.dtype, torch.promote_types(query_BNTH.dtype, torch.float32)
        terms = 1 + (position_key_NEH is not None) + (position_query_NEH is not None)
        ctx.factor, ctx.scale, kept_BNTT = 1 / math.sqrt(terms * query_BNTH.shape[-1]), 1.0, None
        if dropout:
            num_rows, num_heads, length, _ = query_BNTH.shape
            kept_BNTT, ctx.scale = draw(torch.empty(()).expand(num_rows, num_heads, length, length), dropout)
        if position_key_NEH is not None:
            position_key_NEH = position_key_NEH.flip(1)
        context_BTNH = torch.empty_like(query_BNTH.transpose(1, 2), memory_format=torch.contiguous_format)
        signed = []
        with torch.autocast("cpu", enabled=False):
            for block in _blocks(query_BNTH.shape):
                probabilities_nrTT = _probabilities(
                    block.of(query_BNTH).to(exact) * ctx.factor,
                    block.of(key_BNTH).to(exact),
                    None if position_key_NEH is None else position_key_NEH[block.heads].to(exact),
                    None
                    if position_query_NEH is None
                    else position_query_NEH[block.heads].to(exact) * ctx.factor,
                    mask_r1T=None if mask_B11T is None else mask_B11T[block.rows, 0],
                ).to(dtype)
                kept_nrTT = probabilities_nrTT
                if kept_BNTT is not None:
                    sign = block.of(kept_BNTT).to(dtype).mul_(2).sub_(1)
                    probabilities_nrTT = probabilities_nrTT.mul_(sign)
                    kept_nrTT = probabilities_nrTT.relu()
                context_nrTH = kept_nrTT @ (block.of(value_BNTH) * ctx.scale)
                context_BTNH[block.rows, :, block.heads] = context_nrTH.permute(1, 2, 0, 3)
                signed.append(probabilities_nrTT)
        ctx.save_for_backward(query_BNTH, key_BNTH, value_BNTH, position_key_NEH, position_query_NEH, *signed)
        return context_BTNH.transpose(1, 2)

    @staticmethod
    def backward(ctx: Any, gradient_BNTH: Tensor) -> tuple[Tensor | None, ...]:  # pyright: ignore[reportIncompatibleMethodOverride]
        query_BNTH, key_BNTH, value_BNTH, position_key_NEH, position_query_NEH, *signed = ctx.saved_tensors
        of_query, of_key, of_value = (torch.empty_like(v) for v in (query_BNTH, key_BNTH, value_BNTH))
        of_pk = None if position_key_NEH is None else torch.zeros_like(position_key_NEH, dtype=torch.promote_types(query_BNTH.dtype, torch.float32))
        of_pq = None if position_query_NEH is None else torch.zeros_like(position_query_NEH, dtype=torch.promote_types(query_BNTH.dtype, torch.float32))
        buffer = None
        for block, s in zip(_blocks(query_BNTH.shape), signed):
            g, q, k, v = (block.of(t) for t in (gradient_BNTH, query_BNTH, key_BNTH, value_BNTH))
            kept = s.relu()
            of = (g @ (v * ctx.scale).mT).mul_(kept)
            of.addcmul_(s.abs(), of.sum(-1, keepdim=True), value=-1)
            of_v = (kept.mT @ g) * ctx.scale
            of_q, of_k = of @ k, of.mT @ q
            if buffer is None or buffer.shape[:2] != of.shape[:2]:
                buffer = of.new_zeros(*of.shape[:3], 2 * of.shape[-1] - 1)
            if of_pk is not None:
                _diagonal(buffer).copy_(of)
                of_q += (buffer.flatten(1, 2) @ position_key_NEH[block.heads]).view_as(of_q)
                of_pk[block.heads] += buffer.flatten(1, 2).mT @ q.flatten(1, 2)
            if of_pq is not None:
                _diagonal(buffer).copy_(of.mT)
                of_k += (buffer.flatten(1, 2) @ position_query_NEH[block.heads]).view_as(of_k)
                of_pq[block.heads] += buffer.flatten(1, 2).mT @ k.flatten(1, 2)
            of_query[block.rows, block.heads] = (of_q * ctx.factor).transpose(0, 1)
            of_key[block.rows, block.heads] = (of_k * ctx.factor).transpose(0, 1)
            of_value[block.rows, block.heads] = of_v.transpose(0, 1)
        if of_pk is not None:
            of_pk = of_pk.flip(1).mul_(ctx.factor).to(query_BNTH.dtype)
        if of_pq is not None:
            of_pq = of_pq.mul_(ctx.factor).to(query_BNTH.dtype)
        return of_query, of_key, of_value, of_pk, of_pq, None, None
