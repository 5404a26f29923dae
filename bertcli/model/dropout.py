"""Dropout (Srivastava et al. 2014): alone, and with the residual sum and LayerNorm that follow it in BERT.

On a CPU torch draws Bernoulli numbers one after the other, which in a small BERT takes longer than its matrix
products. Here 16 bits of SFC64 (Doty-Humphrey 2010) decide on each element, drawn by all threads. So a
probability is met to within 2^-17, and what stays is scaled by the one that is met: the mean is exact.
"""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from torch import Tensor, nn

_BLOCK = 1 << 20
"""Elements that one generator decides on, whatever the number of threads."""
_LEVELS = 1 << 16


class Dropout(nn.Module):
    """In training, each element is 0 with this probability, else scaled so that the mean stays."""

    def __init__(self, probability: float) -> None:
        super().__init__()
        self.p = probability

    def forward(self, values: Tensor) -> Tensor:
        if self.training and self.p and draws_itself(values):
            return _Drop.apply(values, self.p)  # pyright: ignore[reportReturnType]
        return F.dropout(values, self.p, self.training)


def drop_add_norm(values: Tensor, residual: Tensor, norm: nn.LayerNorm, probability: float) -> Tensor:
    """LayerNorm(residual + Dropout(values)); all of them [..., D], and the result in the values' dtype."""
    if probability == 0.0 or not draws_itself(values):
        return norm(residual + F.dropout(values, probability)).to(values.dtype)  # fp32 under CUDA's autocast
    return _DropAddNorm.apply(values, residual, norm.weight, norm.bias, norm.eps, probability)  # pyright: ignore[reportReturnType]


def draws_itself(values: Tensor) -> bool:
    """Whether `draw` is the faster way: GPUs, and what a compiler makes, have their own."""
    return values.device.type == "cpu" and not torch.compiler.is_compiling()


def draw(values: Tensor, probability: float) -> tuple[Tensor, float]:
    """uint8, for each of the values 0, with this probability, or 1; and by how much to scale what stays.

    A function of the state of torch's generator: what restores that one draws them again.
    """
    dropped = min(round(probability * _LEVELS), _LEVELS - 1)
    kept = torch.empty(values.shape, dtype=torch.uint8)
    seed = int(torch.randint(2**63 - 1, ()))
    flat = kept.view(-1).numpy().view(np.bool_)
    if len(flat) <= _BLOCK:  # waking a thread takes longer
        _draw(flat, (seed, 0), dropped)
    else:
        starts = range(0, len(flat), _BLOCK)
        list(
            _threads().map(lambda start: _draw(flat[start : start + _BLOCK], (seed, start), dropped), starts)
        )
    return kept, _LEVELS / (_LEVELS - dropped)


def _draw(kept: NDArray[np.bool_], seed: tuple[int, int], dropped: int) -> None:
    generator = np.random.Generator(np.random.SFC64(seed))
    words = generator.integers(2**64, size=-(-len(kept) // 4), dtype=np.uint64)  # lets go of Python's lock
    np.greater_equal(words.view(np.uint16)[: len(kept)], dropped, out=kept)


@cache
def _threads() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(torch.get_num_threads(), "dropout")


os.register_at_fork(after_in_child=_threads.cache_clear)  # a fork has none of its parent's threads


class _Drop(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, values: Tensor, probability: float) -> Tensor:
        kept, ctx.scale = draw(values, probability)
        ctx.save_for_backward(kept)
        return _scaled(values, kept, ctx.scale)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None]:  # pyright: ignore[reportIncompatibleMethodOverride]
        (kept,) = ctx.saved_tensors
        return _scaled(gradient, kept, ctx.scale), None


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
        return _scaled(of_total, kept, ctx.scale), of_total, of_weight, of_bias, None, None


def _scaled(values: Tensor, kept: Tensor, scale: float) -> Tensor:
    """values * kept * scale in one pass."""
    return torch.addcmul(values.new_zeros(()), values, kept.to(values.dtype), value=scale)
