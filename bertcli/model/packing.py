"""Padded rows <-> their real tokens alone, one after the other: padding then costs nothing but attention."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from bertcli.model.head_layout import HeadLayout
from bertcli.model.row_groups import RowGroup, group_rows


@dataclass(frozen=True)
class Wanted:
    """The tokens whose last hidden states are wanted.

    Attributes:
        numbers_K: int64, which of the R they are.
        queries, keys: for attention that is written out and has queries of them alone: the layout of those,
            and the one of all tokens' keys and values. None: it is not.
    """

    numbers_K: Tensor
    queries: HeadLayout | None = None
    keys: HeadLayout | None = None


@dataclass(frozen=True)
class Packing:
    """Where the real tokens of a batch stand.

    Attributes:
        shape: (B, T).
        places_R: int64, their flat places b * T + t, and some of padding (`round_up`); None: every place.
        numbers_BT: int64, the inverse: which of the R stands there (0 at padding that is none of them).
        mask_B11T: bool, True at real tokens, for attention over padded rows; None: every place is.
        starts_S: int32, where each row starts among the R, then R: for attention that reads them packed.
            Padding makes rows of its own, no longer than T. None: attention needs padded rows.
        groups: of all rows, for attention that is written out; None: it is not.
    """

    shape: tuple[int, int]
    places_R: Tensor | None = None
    numbers_BT: Tensor | None = None
    mask_B11T: Tensor | None = None
    starts_S: Tensor | None = None
    groups: tuple[RowGroup, ...] | None = None

    @classmethod
    def of(
        cls,
        mask_BT: Tensor | None,
        shape: tuple[int, int],
        device: torch.device,
        keep_packed: bool = False,
        num_heads: int | None = None,
    ) -> Packing:
        """Found on the CPU and sent to `device`: counting on a GPU would wait for all that it has to do.

        Args:
            mask_BT: bool, True at real tokens; on a GPU `unread`; None: no padding, nothing to leave out.
            keep_packed: whether attention reads packed rows.
            num_heads: of attention that is written out; None: it is not.
        """
        if mask_BT is None:
            everything = torch.ones(shape, dtype=torch.bool)
            return cls(shape, groups=(RowGroup.of(everything, num_heads),) if num_heads else None)
        if mask_BT.device.type != "cpu":
            return cls.unread(mask_BT, keep_packed)
        mask = mask_BT.flatten()
        real_R, padding = mask.nonzero().squeeze(1), (~mask).nonzero().squeeze(1)
        places_R = torch.cat([real_R, padding[: round_up(len(real_R)) - len(real_R)]])
        numbers_BT = torch.zeros(shape, dtype=torch.int64)
        numbers_BT.view(-1)[places_R] = torch.arange(len(places_R))
        sent = _send(places_R, device), _send(numbers_BT, device)
        if not keep_packed:
            groups = group_rows(mask.view(shape), num_heads) if num_heads else None
            return cls(shape, *sent, mask_B11T=_send(mask_BT, device)[:, None, None, :], groups=groups)
        ends_B = mask.view(shape).sum(1).cumsum(0)
        beyond = torch.arange(len(real_R), len(places_R), shape[1])[1:]
        starts_S = torch.cat([torch.tensor([0]), ends_B, beyond, torch.tensor([len(places_R)])])
        return cls(shape, *sent, starts_S=_send(starts_S.int(), device))

    @classmethod
    def unread(cls, mask_BT: Tensor, keep_packed: bool) -> Packing:
        """Of a mask that nobody looks at, as a CUDA graph cannot: padding is computed along.

        For attention that reads packed rows, what pads a row is a row of its own, maybe of no tokens.
        """
        rows, length = mask_BT.shape
        if not keep_packed:
            return cls((rows, length), mask_B11T=mask_BT[:, None, None, :])
        starts_B = torch.arange(0, rows * length, length, device=mask_BT.device)
        starts_S = torch.stack([starts_B, starts_B + mask_BT.sum(1)], dim=1).flatten()
        return cls((rows, length), starts_S=F.pad(starts_S, (0, 1), value=rows * length).int())

    def pack(self, values_BTD: Tensor) -> Tensor:
        """[B, T, D] -> [R, D]."""
        flat = values_BTD.flatten(0, 1)
        return flat if self.places_R is None else _Gather.apply(flat, self.places_R)

    def want(self, places_K: Tensor) -> Wanted:
        """Of real tokens at flat places b * T + t."""
        numbers_K = places_K if self.numbers_BT is None else self.numbers_BT.flatten()[places_K]
        if self.groups is None or not len(places_K):
            return Wanted(numbers_K)
        num_rows, length = self.shape
        num_heads = self.groups[0].layout.shape[1]
        asking_K, asking_BW = _side_by_side(places_K // length, num_rows)
        if self.places_R is None or self.numbers_BT is None:
            places_R, numbers_BT = _of_all(self.shape)
        else:
            places_R, numbers_BT = self.places_R, self.numbers_BT
        return Wanted(
            numbers_K,
            queries=HeadLayout.of(asking_K, asking_BW, num_heads, parts=1),
            keys=HeadLayout.of(places_R, numbers_BT, num_heads, parts=2),
        )

    def unpack(self, values_RD: Tensor) -> Tensor:
        """[R, D] -> [B, T, D], 0 at padding."""
        rows, length = self.shape
        if self.places_R is not None:
            values_RD = _Scatter.apply(values_RD, self.places_R, rows * length)
        return values_RD.unflatten(0, self.shape)


def _of_all(shape: tuple[int, int]) -> tuple[Tensor, Tensor]:
    """places_R and numbers_BT where every place is packed."""
    places_R = torch.arange(shape[0] * shape[1])
    return places_R, places_R.view(shape)


def _side_by_side(rows_K: Tensor, num_rows: int) -> tuple[Tensor, Tensor]:
    """K tokens of these rows, one after the other in a row of W, the most that one has -> places_K and
    numbers_BW, as a `Packing` has them."""
    counts_B = rows_K.bincount(minlength=num_rows)
    most = int(counts_B.max())
    by_row_K = rows_K.argsort(stable=True)
    sorted_K, before_B = rows_K[by_row_K], counts_B.cumsum(0) - counts_B
    places_K = torch.empty_like(rows_K)
    places_K[by_row_K] = sorted_K * most + torch.arange(len(rows_K)) - before_B[sorted_K]
    numbers_BW = torch.zeros(num_rows, most, dtype=torch.int64)
    numbers_BW.view(-1)[places_K] = torch.arange(len(rows_K))
    return places_K, numbers_BW


def _send(tensor: Tensor, device: torch.device) -> Tensor:
    """From pinned memory, as only then the copy to a GPU goes on beside its other work."""
    if device.type == "cuda" and tensor.device.type == "cpu":
        tensor = tensor.pin_memory()
    return tensor.to(device, non_blocking=True)


def round_up(number: int) -> int:
    """The next of 16 sizes from each power of 2 to the next.

    Batches that differ in size by a little then take the same memory and the same kernels: with a size of its
    own for each, freed memory fits nothing that follows, and a heap grows to a multiple of what is in use.
    """
    step = 1 << max(0, number.bit_length() - 5)
    return -(-number // step) * step


def take(values_RD: Tensor, numbers_K: Tensor) -> Tensor:
    """[K, D], some of the R rows, each as often as it is asked for."""
    if values_RD.device.type == "cpu":
        return values_RD.index_select(0, numbers_K)
    # Its derivative is summed in a fixed order; that of index_select too, but it first reads numbers_K back.
    return F.embedding(numbers_K, values_RD)


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
