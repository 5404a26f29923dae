"""Dropout (Srivastava et al. 2014) with faster random numbers; replaces `layer.Dropout.forward` on a CPU.

On a CPU, torch draws Bernoulli numbers one after the other. Here all threads draw them, 16 bits of SFC64
(Doty-Humphrey 2010) for each element. The probability is exact to within 2^-17, and kept elements are scaled
by the probability after rounding, so the mean is exact.
"""

import os
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from bertcli.model.layer import Dropout
from bertcli.model.seam import is_on_cpu, replace

_BLOCK = 1 << 20
"""The elements per generator, which do not depend on the number of threads."""
_LEVELS = 1 << 16


def drop(module: Dropout, values: Tensor) -> Tensor:
    """Compute `Dropout.forward` in training, with `draw`: [...] -> [...]."""
    return _Drop.apply(values, module.p)  # pyright: ignore[reportReturnType]


def draw(values: Tensor, probability: float) -> tuple[Tensor, float]:
    """A uint8 for each value, 0 with this probability, else 1; and the scale of the kept values.

    The draw depends only on the state of torch's generator: an equal state gives an equal draw.
    """
    dropped = min(round(probability * _LEVELS), _LEVELS - 1)
    kept = torch.empty(values.shape, dtype=torch.uint8)
    seed = int(torch.randint(2**63 - 1, ()))
    flat = kept.view(-1).numpy().view(np.bool_)
    if len(flat) <= _BLOCK:  # starting a thread would take longer
        _draw(flat, (seed, 0), dropped)
    else:
        starts = range(0, len(flat), _BLOCK)
        list(
            _threads().map(lambda start: _draw(flat[start : start + _BLOCK], (seed, start), dropped), starts)
        )
    return kept, _LEVELS / (_LEVELS - dropped)


def _draw(kept: NDArray[np.bool_], seed: tuple[int, int], dropped: int) -> None:
    generator = np.random.Generator(np.random.SFC64(seed))
    words = generator.integers(2**64, size=-(-len(kept) // 4), dtype=np.uint64)  # releases Python's lock
    np.greater_equal(words.view(np.uint16)[: len(kept)], dropped, out=kept)


@cache
def _threads() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(torch.get_num_threads(), "dropout")


if hasattr(os, "register_at_fork"):  # a fork does not have its parent's threads; Windows has no fork
    os.register_at_fork(after_in_child=_threads.cache_clear)


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


def _scaled(values: Tensor, kept: Tensor, scale: float) -> Tensor:
    """The product values * kept * scale, in one pass."""
    return torch.addcmul(values.new_zeros(()), values, kept.to(values.dtype), value=scale)


replace(
    Dropout.forward,
    drop,
    when=lambda module, values: module.training and module.p > 0 and is_on_cpu("dropout", values),
)
