"""Dropout, residual sum and LayerNorm in one function: replaces `encoder.drop_add_norm` on a CPU."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from bertcli.model.fast.dropout import draw, scale_kept
from bertcli.model.fast.switch import is_on_cpu


def is_faster(values: Tensor, residual: Tensor, norm: nn.LayerNorm, probability: float) -> bool:
    """Whether `drop_add_norm` is."""
    return probability > 0 and is_on_cpu("drop_add_norm", values)


def drop_add_norm(values: Tensor, residual: Tensor, norm: nn.LayerNorm, probability: float) -> Tensor:
    """LayerNorm(residual + Dropout(values)); all of them [..., D]."""
    return _DropAddNorm.apply(values, residual, norm.weight, norm.bias, norm.eps, probability)  # pyright: ignore[reportReturnType]


class _DropAddNorm(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        values: Tensor,
        residual: Tensor,
        weight: Tensor,
        bias: Tensor,
        eps: float,
        probability: float,
    ) -> Tensor:
        kept, ctx.scale = draw(values, probability)
        total = torch.addcmul(residual, values, kept.to(values.dtype), value=ctx.scale)
        result, mean, inverse_std = torch.native_layer_norm(total, weight.shape, weight, bias, eps)
        ctx.save_for_backward(kept, total, mean, inverse_std, weight, bias)
        return result

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:  # pyright: ignore[reportIncompatibleMethodOverride]
        kept, total, mean, inverse_std, weight, bias = ctx.saved_tensors
        of_total, of_weight, of_bias = torch.ops.aten.native_layer_norm_backward(
            gradient, total, weight.shape, mean, inverse_std, weight, bias, [True, True, True]
        )
        return scale_kept(of_total, kept, ctx.scale), of_total, of_weight, of_bias, None, None
