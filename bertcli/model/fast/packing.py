"""Padded rows <-> their real tokens alone, one after the other: the layout of `fast.encoder`.

Padding then has a cost only in attention, which is computed on padded rows.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from bertcli.model.fast.switch import is_on


@dataclass(frozen=True)
class Packing:
    """The positions of the real tokens of a batch.

    Attributes:
        shape: (B, T).
        places_R: int64, their flat positions b * T + t, and some of padding (`round_up`); None: all.
        numbers_BT: int64, the inverse: the index in `places_R` (0 at padding that is not in it).
        mask_B11T: bool, True at real tokens, for attention; None: no padding.
    """

    shape: tuple[int, int]
    places_R: Tensor | None = None
    numbers_BT: Tensor | None = None
    mask_B11T: Tensor | None = None

    @classmethod
    def of(cls, mask_BT: Tensor | None, hidden_BTD: Tensor) -> Packing:
        """Of the real tokens alone on a CPU; on a GPU, where constant sizes are faster, of all positions.

        `mask_BT`: bool, True at real tokens; None: no padding.
        """
        rows, length, device = *hidden_BTD.shape[:2], hidden_BTD.device
        if mask_BT is None:
            return cls((rows, length))
        mask_B11T = mask_BT.to(device, non_blocking=True)[:, None, None, :]
        if device.type != "cpu" or not is_on("packing"):
            return cls((rows, length), mask_B11T=mask_B11T)
        places_R = real_places(mask_BT)
        return cls((rows, length), places_R, _inverse(places_R, (rows, length)), mask_B11T)

    @classmethod
    def side_by_side(cls, rows_K: Tensor, num_rows: int) -> Packing:
        """Of K tokens, whose rows are `rows_K`: the tokens of a row one after the other; all rows have the
        length of the longest."""
        counts_B = rows_K.bincount(minlength=num_rows)
        most = int(counts_B.max())
        by_row_K = rows_K.argsort(stable=True)
        sorted_K, before_B = rows_K[by_row_K], counts_B.cumsum(0) - counts_B
        places_K = torch.empty_like(rows_K)
        places_K[by_row_K] = sorted_K * most + torch.arange(len(rows_K)) - before_B[sorted_K]
        return cls((num_rows, most), places_K, _inverse(places_K, (num_rows, most)))

    def pack(self, values_BTD: Tensor) -> Tensor:
        """[B, T, D] -> [R, D]."""
        flat = values_BTD.flatten(0, 1)
        return flat if self.places_R is None else take_distinct(flat, self.places_R)

    def unpack(self, values_RD: Tensor) -> Tensor:
        """[R, D] -> [B, T, D], 0 at padding."""
        rows, length = self.shape
        if self.places_R is not None:
            values_RD = _Scatter.apply(values_RD, self.places_R, rows * length)
        return values_RD.unflatten(0, self.shape)

    def find(self, places_K: Tensor) -> Tensor:
        """Real tokens at flat positions b * T + t -> numbers_K, their indices among the R packed tokens."""
        return places_K if self.numbers_BT is None else self.numbers_BT.flatten()[places_K]


def real_places(mask_BT: Tensor) -> Tensor:
    """int64 [R]: the flat positions of the real tokens, then of padding, up to `round_up` of their number."""
    mask = mask_BT.flatten()
    real_K, padding = mask.nonzero().squeeze(1), (~mask).nonzero().squeeze(1)
    return torch.cat([real_K, padding[: round_up(len(real_K)) - len(real_K)]])


def _inverse(places_R: Tensor, shape: tuple[int, int]) -> Tensor:
    """-> numbers_BT."""
    numbers_BT = torch.zeros(shape, dtype=torch.int64)
    numbers_BT.view(-1)[places_R] = torch.arange(len(places_R))
    return numbers_BT


def round_up(number: int) -> int:
    """The next of 16 sizes from each power of 2 to the next.

    So batches of nearly the same size use the same memory and kernels. If each had its own size, freed memory
    would fit no later batch, and the heap would grow to a multiple of the memory in use.
    """
    step = 1 << max(0, number.bit_length() - 5)
    return -(-number // step) * step


def take(values_RD: Tensor, numbers_K: Tensor) -> Tensor:
    """[K, D], some of the R rows, with repetitions."""
    if values_RD.device.type == "cpu":
        return values_RD.index_select(0, numbers_K)
    # Deterministic backward; so is that of index_select, but it first copies numbers_K to the CPU.
    return F.embedding(numbers_K, values_RD)


def take_distinct(values_RD: Tensor, numbers_K: Tensor) -> Tensor:
    """[K, D], some of the R rows, each at most once."""
    return _Gather.apply(values_RD, numbers_K)  # pyright: ignore[reportReturnType]


class _Gather(torch.autograd.Function):
    """`index_select` of distinct positions; torch's own backward adds row by row, as for repeated ones."""

    @staticmethod
    def forward(ctx: Any, values: Tensor, places: Tensor) -> Tensor:
        ctx.save_for_backward(places)
        ctx.size = len(values)
        return values.index_select(0, places)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None]:  # pyright: ignore[reportIncompatibleMethodOverride]
        (places,) = ctx.saved_tensors
        return _put(gradient, places, ctx.size), None


class _Scatter(torch.autograd.Function):
    """The inverse: rows to distinct positions, 0 elsewhere."""

    @staticmethod
    def forward(ctx: Any, values: Tensor, places: Tensor, size: int) -> Tensor:
        ctx.save_for_backward(places)
        return _put(values, places, size)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None, None]:  # pyright: ignore[reportIncompatibleMethodOverride]
        (places,) = ctx.saved_tensors
        return gradient.index_select(0, places), None, None


def _put(values: Tensor, places: Tensor, size: int) -> Tensor:
    return values.new_zeros(size, *values.shape[1:]).index_copy_(0, places, values)
