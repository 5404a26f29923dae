"""Padded rows <-> their real tokens alone, one after the other: padding then costs nothing but attention."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor


@dataclass(frozen=True)
class Packing:
    """Where the real tokens of a batch stand.

    Attributes:
        shape: (B, T).
        places_R: int64, their flat places b * T + t, and some of padding (`round_up`); None: every place.
        mask_B11T: bool, True at real tokens, for attention; None: every place is.
    """

    shape: tuple[int, int]
    places_R: Tensor | None
    mask_B11T: Tensor | None

    @classmethod
    def of(cls, mask_BT: Tensor | None, shape: tuple[int, int]) -> Packing:
        """`mask_BT` (bool): True at real tokens; None: no padding, and nothing to leave out."""
        if mask_BT is None:
            return cls(shape, None, None)
        mask = mask_BT.flatten()
        places_R = mask.nonzero().squeeze(1)
        missing = round_up(len(places_R)) - len(places_R)
        if missing:
            places_R = torch.cat([places_R, (~mask).nonzero().squeeze(1)[:missing]])
        return cls(shape, places_R, mask_BT[:, None, None, :])

    def pack(self, values_BTD: Tensor) -> Tensor:
        """[B, T, D] -> [R, D]."""
        flat = values_BTD.flatten(0, 1)
        return flat if self.places_R is None else _Gather.apply(flat, self.places_R)

    def unpack(self, values_RD: Tensor) -> Tensor:
        """[R, D] -> [B, T, D], 0 at padding."""
        rows, length = self.shape
        if self.places_R is not None:
            values_RD = _Scatter.apply(values_RD, self.places_R, rows * length)
        return values_RD.unflatten(0, self.shape)


def round_up(number: int) -> int:
    """The next of 16 sizes from each power of 2 to the next.

    Batches that differ in size by a little then take the same memory and the same kernels: with a size of its
    own for each, freed memory fits nothing that follows, and a heap grows to a multiple of what is in use.
    """
    step = 1 << max(0, number.bit_length() - 5)
    return -(-number // step) * step


class _Gather(torch.autograd.Function):
    """`index_select` of distinct places; torch's own backward adds row by row, as if they might repeat."""

    @staticmethod
    def forward(ctx: Any, values: Tensor, places: Tensor) -> Tensor:
        ctx.save_for_backward(places)
        ctx.size = len(values)
        return values.index_select(0, places)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None]:  # pyright: ignore[reportIncompatibleMethodOverride]
        (places,) = ctx.saved_tensors
        return _spread(gradient, places, ctx.size), None


class _Scatter(torch.autograd.Function):
    """The inverse: rows to distinct places, 0 elsewhere."""

    @staticmethod
    def forward(ctx: Any, values: Tensor, places: Tensor, size: int) -> Tensor:
        ctx.save_for_backward(places)
        return _spread(values, places, size)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None, None]:  # pyright: ignore[reportIncompatibleMethodOverride]
        (places,) = ctx.saved_tensors
        return gradient.index_select(0, places), None, None


def _spread(values: Tensor, places: Tensor, size: int) -> Tensor:
    return values.new_zeros(size, *values.shape[1:]).index_copy_(0, places, values)
