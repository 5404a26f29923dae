"""Packed tokens <-> heads, each with its own matrix of tokens: one copy there, and one back."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True)
class HeadLayout:
    """What stands where (I rows in all heads: B * N).

    Attributes:
        shape: (B, N, T).
        sources_3BNT: int64, for queries, keys and values by head which of the R * 3 * N heads of packed
            tokens. Padding that is not packed has those of the first token, which nothing looks at.
        places_R3N: int64, the inverse: for each head of a packed token which of the 3 * B * N * T.
    """

    shape: tuple[int, int, int]
    sources_3BNT: Tensor
    places_R3N: Tensor

    @classmethod
    def of(cls, places_R: Tensor, numbers_BT: Tensor, num_heads: int) -> HeadLayout:
        """`places_R`, `numbers_BT`: as in `Packing`; on the CPU."""
        rows, length = numbers_BT.shape
        which_3111, head_N1 = torch.arange(3)[:, None, None, None], torch.arange(num_heads)[:, None]
        sources_3BNT = (numbers_BT[:, None] * 3 + which_3111) * num_heads + head_N1
        row_R11, token_R11 = (part[:, None, None] for part in (places_R // length, places_R % length))
        which_31, head_N = torch.arange(3)[:, None], torch.arange(num_heads)
        places_R3N = ((which_31 * rows + row_R11) * num_heads + head_N) * length + token_R11
        return cls((rows, num_heads, length), sources_3BNT, places_R3N)

    def split(self, projected_RE: Tensor) -> Tensor:
        """Queries, keys and values side by side -> heads_3ITH, a tensor of its own."""
        heads = self._by_head(projected_RE, 3).index_select(0, self.sources_3BNT.flatten())
        return heads.view(3, -1, self.shape[2], heads.shape[1])

    def join(self, context_ITH: Tensor) -> Tensor:
        """-> context_RD."""
        context = context_ITH.flatten(0, 1).index_select(0, self._places_of_one)
        return context.view(len(self.places_R3N), -1)

    def unsplit(self, gradient_3ITH: Tensor) -> Tensor:
        """The gradient of `split`: [R, E]. Where nothing looks there is none."""
        gradient = gradient_3ITH.flatten(0, 2).index_select(0, self.places_R3N.flatten())
        return gradient.view(len(self.places_R3N), -1)

    def unjoin(self, gradient_RD: Tensor) -> Tensor:
        """The gradient of `join`: [I, T, H], 0 at padding that is not packed."""
        gradient = self._by_head(gradient_RD, 1)
        rows, heads, length = self.shape
        spread = gradient.new_zeros(rows * heads * length, gradient.shape[1])
        return spread.index_copy_(0, self._places_of_one, gradient).view(rows * heads, length, -1)

    @property
    def _places_of_one(self) -> Tensor:
        """Where the heads of the first of the three stand."""
        return self.places_R3N[:, 0].flatten()

    def _by_head(self, values: Tensor, number: int) -> Tensor:
        """[R, number * D] -> [R * number * N, H]."""
        return values.reshape(len(values) * number * self.shape[1], -1)
