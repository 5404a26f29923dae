"""Disentangled attention in blocks that stay in the cache; replaces `disentangled.attend` on a CPU.

The position in a score depends only on i - j. The scores [T, T] of a term are therefore a diagonal view of
the products of tokens with the positions of all distances (`_diagonal`), and nothing is gathered.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, NamedTuple

import torch
from torch import Tensor

from bertcli.model import disentangled
from bertcli.model.fast.dropout import draw
from bertcli.model.seam import is_on_cpu, replace

_AT_ONCE = 1 << 19
"""The number of scores computed at once; they must stay in the cache until they are probabilities."""
_TILE = 64
"""The tokens whose products with positions are computed at once; these need T + `_TILE` - 1 distances."""


def attend(
    query_BNTH: Tensor,
    key_BNTH: Tensor,
    value_BNTH: Tensor,
    position_key_NEH: Tensor | None,
    position_query_NEH: Tensor | None,
    mask_B11T: Tensor | None,
    dropout: float,
) -> Tensor:
    """Compute `disentangled.attend`, in blocks."""
    if position_key_NEH is not None:
        position_key_NEH = position_key_NEH.flip(1)  # ordered by the distances j - i
    heads = query_BNTH, key_BNTH, value_BNTH
    inputs = _Inputs(*heads, position_key=position_key_NEH, position_query=position_query_NEH)
    if torch.is_grad_enabled():
        return _Attend.apply(*inputs, mask_B11T, dropout)  # pyright: ignore[reportReturnType]
    return _forward(inputs, mask_B11T, dropout, signed=None)[0]


class _Inputs(NamedTuple):
    """The inputs of a batch, or of a block of n heads of r rows, as [n, r, T, H] and [n, E, H]."""

    query: Tensor
    key: Tensor
    value: Tensor
    position_key: Tensor | None
    position_query: Tensor | None

    def block(self, rows: slice, heads: slice) -> _Inputs:
        tokens = (each[rows, heads].transpose(0, 1).contiguous() for each in self[:3])
        return _Inputs(*tokens, *(None if each is None else each[heads] for each in self[3:]))

    def blocks(self) -> Iterator[tuple[slice, slice]]:
        """The rows and heads of each block that is computed at once."""
        num_rows, num_heads, length, _ = self.query.shape
        heads = max(1, min(num_heads, _AT_ONCE // length**2))
        rows = max(1, _AT_ONCE // (num_heads * length**2))
        for row in range(0, num_rows, rows):
            for head in range(0, num_heads, heads):
                yield slice(row, row + rows), slice(head, head + heads)

    @property
    def factor(self) -> float:
        """The factor of the scores, 1 / sqrt(terms H)."""
        terms = 1 + sum(each is not None for each in self[3:])
        return 1 / math.sqrt(terms * self.query.shape[-1])


def _forward(
    inputs: _Inputs, mask_B11T: Tensor | None, dropout: float, signed: list[Tensor] | None
) -> tuple[Tensor, float]:
    """The context_BNTH, and the scale of the values after dropout.

    `signed` gets each block's probabilities_nrTT, with dropped ones negative; None means that they are not
    kept.
    """
    (num_rows, num_heads, length, _), dtype = inputs.query.shape, inputs.query.dtype
    kept_NBTT, scale = None, 1.0
    if dropout:
        kept_NBTT, scale = draw(torch.empty(()).expand(num_heads, num_rows, length, length), dropout)
    context_BTNH = inputs.query.new_empty(num_rows, length, *inputs.query.shape[1::2])
    for rows, heads in inputs.blocks():
        block = inputs.block(rows, heads)
        mask_r1T = None if mask_B11T is None else mask_B11T[rows, 0]
        probabilities_nrTT = _probabilities(block, mask_r1T).to(dtype)
        if kept_NBTT is None:
            kept_nrTT = probabilities_nrTT
        else:
            is_kept_nrTT = kept_NBTT[heads, rows].view(torch.bool)
            probabilities_nrTT = torch.where(is_kept_nrTT, probabilities_nrTT, -probabilities_nrTT)
            kept_nrTT = probabilities_nrTT.relu()
        context_nrTH = kept_nrTT @ block.value
        torch.mul(context_nrTH.permute(1, 2, 0, 3), scale, out=context_BTNH[rows, :, heads])
        if signed is not None:
            signed.append(probabilities_nrTT)
    return context_BTNH.transpose(1, 2), scale


def _probabilities(block: _Inputs, mask_r1T: Tensor | None) -> Tensor:
    """The probabilities [n, r, T, T], in at least fp32 (see `fast.attention`)."""
    exact = torch.promote_types(block.query.dtype, torch.float32)
    query_nrTH, key_nrTH = block.query.to(exact) * block.factor, block.key.to(exact)
    with torch.autocast("cpu", enabled=False):
        scores_nrTT = query_nrTH @ key_nrTH.mT
        if block.position_key is not None:
            _add_positions(scores_nrTT, query_nrTH, block.position_key.to(exact))
        if block.position_query is not None:
            _add_positions(scores_nrTT.mT, key_nrTH, block.position_query.to(exact) * block.factor)
    if mask_r1T is not None:  # one vectorized sum; `masked_fill_` is slower
        scores_nrTT += torch.where(mask_r1T, 0.0, -math.inf)
    return scores_nrTT.softmax(dim=-1)


def _tiles(length: int) -> Iterator[tuple[slice, slice]]:
    """The tokens i of each tile, and the range of their distances j - i."""
    for start in range(0, length, _TILE):
        stop = min(start + _TILE, length)
        yield slice(start, stop), slice(length - stop, 2 * length - 1 - start)


def _diagonal(by_distance_nrWE: Tensor) -> Tensor:
    """The view [n, r, W, T] whose element (i, j) is the element j - i + W - 1 of row i; T = E - W + 1."""
    heads, rows, width, distances = by_distance_nrWE.shape
    strides = rows * width * distances, width * distances, distances - 1, 1
    return by_distance_nrWE.as_strided((heads, rows, width, distances - width + 1), strides, width - 1)


def _add_positions(scores_nrTT: Tensor, tokens_nrTH: Tensor, positions_nEH: Tensor) -> None:
    """Add to the score (i, j) the product of token i with the position at the distance j - i."""
    for tile, near in _tiles(tokens_nrTH.shape[2]):
        tile_nrWH = tokens_nrTH[:, :, tile]
        products_nPE = tile_nrWH.flatten(1, 2) @ positions_nEH[:, near].mT
        scores_nrTT[:, :, tile] += _diagonal(products_nPE.unflatten(1, tile_nrWH.shape[1:3]))


class _Attend(torch.autograd.Function):
    """The attention with its derivatives; it keeps the inputs and one matrix [T, T] per head."""

    @staticmethod
    def forward(ctx: Any, *inputs: Any) -> Tensor:
        batch, signed = _Inputs(*inputs[:5]), []
        context_BNTH, ctx.scale = _forward(batch, *inputs[5:], signed=signed)
        ctx.save_for_backward(*batch, *signed)
        return context_BNTH

    @staticmethod
    def backward(ctx: Any, gradient_BNTH: Tensor) -> tuple[Tensor | None, ...]:  # pyright: ignore[reportIncompatibleMethodOverride]
        saved = ctx.saved_tensors  # can be read once
        batch, signed = _Inputs(*saved[:5]), saved[5:]
        factor = batch.factor * ctx.scale  # the scores' derivatives have both
        exact = torch.promote_types(gradient_BNTH.dtype, torch.float32)  # sums over the whole batch
        of_tokens = [torch.empty_like(each) for each in batch[:3]]
        of_positions = [None if each is None else torch.zeros_like(each, dtype=exact) for each in batch[3:]]
        for (rows, heads), signed_nrTT in zip(batch.blocks(), signed, strict=True):
            block = batch.block(rows, heads)
            gradient_nrTH = gradient_BNTH[rows, heads].transpose(0, 1).contiguous()
            of_scores_nrTT, of_value_nrTH = _of_scores(signed_nrTT, gradient_nrTH, block.value)
            of_query_nrTH, of_key_nrTH = of_scores_nrTT @ block.key, of_scores_nrTT.mT @ block.query
            for scores, tokens, positions, of_block, of_batch in (
                (of_scores_nrTT, block.query, block.position_key, of_query_nrTH, of_positions[0]),
                (of_scores_nrTT.mT, block.key, block.position_query, of_key_nrTH, of_positions[1]),
            ):
                if positions is not None and of_batch is not None:
                    _add_derivatives(
                        scores, tokens, positions, of_tokens=of_block, of_positions=of_batch[heads]
                    )
            parts = of_query_nrTH, of_key_nrTH, of_value_nrTH
            for whole, part, scale in zip(of_tokens, parts, (factor, factor, ctx.scale), strict=True):
                torch.mul(part.transpose(0, 1), scale, out=whole[rows, heads])
        scaled = [None if each is None else (each * factor).to(gradient_BNTH) for each in of_positions]
        return *of_tokens, *scaled, None, None


def _of_scores(signed_nrTT: Tensor, gradient_nrTH: Tensor, value_nrTH: Tensor) -> tuple[Tensor, Tensor]:
    """The derivatives of the scores, P * (dP - sum(P * dP)), and of the values, without dropout's scale."""
    kept_nrTT = signed_nrTT.relu()
    of_value_nrTH = kept_nrTT.mT @ gradient_nrTH
    of_scores_nrTT = (gradient_nrTH @ value_nrTH.mT).mul_(kept_nrTT)
    sum_nrT1 = of_scores_nrTT.sum(-1, keepdim=True)
    return of_scores_nrTT.addcmul_(signed_nrTT.abs(), sum_nrT1, value=-1.0), of_value_nrTH


def _add_derivatives(
    of_scores_nrTT: Tensor,
    tokens_nrTH: Tensor,
    positions_nEH: Tensor,
    of_tokens: Tensor,
    of_positions: Tensor,
) -> None:
    """Add the derivatives of `_add_positions` to `of_tokens` [n, r, T, H] and `of_positions` [n, E, H]."""
    for tile, near in _tiles(tokens_nrTH.shape[2]):
        tile_nrWH = tokens_nrTH[:, :, tile]
        by_distance_nrWE = of_scores_nrTT.new_zeros(*tile_nrWH.shape[:3], near.stop - near.start)
        _diagonal(by_distance_nrWE).copy_(of_scores_nrTT[:, :, tile])
        flat_nPE = by_distance_nrWE.flatten(1, 2)
        of_tokens[:, :, tile] += (flat_nPE @ positions_nEH[:, near]).view(tile_nrWH.shape)
        of_positions[:, near] += flat_nPE.mT @ tile_nrWH.flatten(1, 2)


replace(
    disentangled.attend, attend, when=lambda query_BNTH, *_, **named: is_on_cpu("disentangled", query_BNTH)
)
