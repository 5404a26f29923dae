"""Rows of a batch -> groups of like length, in which attention is padded to their own longest row alone."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import torch
from torch import Tensor

from bertcli.model.head_layout import HeadLayout

WORTH_A_GROUP = 100_000
"""Scores that a further group has to spare: its own calls take as long as about so many."""


@dataclass(frozen=True)
class RowGroup:
    """Rows one after the other, whose tokens stand together among the packed ones.

    Attributes:
        num_tokens: real ones.
        layout: of the rows, as long as the longest of them.
        mask_B11T: bool, True at real tokens; None: all of them are.
    """

    num_tokens: int
    layout: HeadLayout
    mask_B11T: Tensor | None

    @classmethod
    def of(cls, mask_BT: Tensor, num_heads: int) -> RowGroup:
        """`mask_BT`: bool, of these rows."""
        mask_BT = mask_BT[:, : int(_lengths(mask_BT).max())]
        places_R = mask_BT.flatten().nonzero().squeeze(1)
        numbers_BT = torch.zeros(mask_BT.shape, dtype=torch.int64)
        numbers_BT.view(-1)[places_R] = torch.arange(len(places_R))
        layout = HeadLayout.of(places_R, numbers_BT, num_heads)
        is_full = len(places_R) == mask_BT.numel()
        return cls(len(places_R), layout, None if is_full else mask_BT[:, None, None, :])


def group_rows(mask_BT: Tensor, num_heads: int) -> tuple[RowGroup, ...]:
    """All rows, in their order: best sorted by length. `mask_BT`: bool, True at real tokens, on the CPU."""
    cuts = [0, *_cuts(_lengths(mask_BT), num_heads), len(mask_BT)]
    return tuple(RowGroup.of(mask_BT[start:end], num_heads) for start, end in pairwise(cuts))


def _lengths(mask_BT: Tensor) -> Tensor:
    """Of each row up to its last real token."""
    return (mask_BT * torch.arange(1, mask_BT.shape[1] + 1)).amax(1)


def _cuts(lengths_B: Tensor, num_heads: int, first: int = 0) -> list[int]:
    """Before which rows, counted from `first`, a group begins: cut where most is spared, and so each half."""
    if len(lengths_B) < 2:
        return []
    counts = torch.arange(1, len(lengths_B))
    before = counts * lengths_B.cummax(0).values[:-1] ** 2
    after = (len(lengths_B) - counts) * lengths_B.flip(0).cummax(0).values.flip(0)[1:] ** 2
    least, at = (before + after).min(0)
    if num_heads * (len(lengths_B) * int(lengths_B.max()) ** 2 - int(least)) < WORTH_A_GROUP:
        return []
    cut = int(at) + 1
    return [
        *_cuts(lengths_B[:cut], num_heads, first),
        first + cut,
        *_cuts(lengths_B[cut:], num_heads, first + cut),
    ]
