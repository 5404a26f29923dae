"""Packed tokens <-> heads, each with its own matrix of tokens: one copy there, and one back."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True)
class HeadLayout:
    """What stands where (I rows in all heads: B * N; S of queries, keys and values, side by side).

    Attributes:
        shape: (B, N, T).
        sources_SBNT: int64, for each of the S by head which of the R * S * N heads of packed tokens.
            Padding that is not packed has those of the first token, which nothing looks at.
        places_RSN: int64, the inverse: for each head of a packed token which of the S * B * N * T.
    """

    shape: tuple[int, int, int]
    sources_SBNT: Tensor
    places_RSN: Tensor

    @classmethod
    def of(cls, places_R: Tensor, numbers_BT: Tensor, num_heads: int, parts: int = 3) -> HeadLayout:
        """`places_R`, `numbers_BT`: as in `Packing`; on the CPU. `parts`: S."""
        rows, length = numbers_BT.shape
        part_S111, head_N1 = torch.arange(parts)[:, None, None, None], torch.arange(num_heads)[:, None]
        sources_SBNT = (numbers_BT[:, None] * parts + part_S111) * num_heads + head_N1
        row_R11, token_R11 = (place[:, None, None] for place in (places_R // length, places_R % length))
        part_S1, head_N = torch.arange(parts)[:, None], torch.arange(num_heads)
        places_RSN = ((part_S1 * rows + row_R11) * num_heads + head_N) * length + token_R11
        return cls((rows, num_heads, length), sources_SBNT, places_RSN)

    def split(self, projected_RE: Tensor) -> Tensor:
        """-> heads_SITH, a tensor of its own."""
        parts = len(self.sources_SBNT)
        heads = self._by_head(projected_RE, parts).index_select(0, self.sources_SBNT.flatten())
        return heads.view(parts, -1, self.shape[2], heads.shape[1])

    def join(self, context_ITH: Tensor) -> Tensor:
        """-> context_RD."""
        context = context_ITH.flatten(0, 1).index_select(0, self._places_of_one)
        return context.view(len(self.places_RSN), -1)

    def unsplit(self, gradient_SITH: Tensor) -> Tensor:
        """The gradient of `split`: [R, E]. Where nothing looks there is none."""
        gradient = gradient_SITH.flatten(0, 2).index_select(0, self.places_RSN.flatten())
        return gradient.view(len(self.places_RSN), -1)

    def unjoin(self, gradient_RD: Tensor) -> Tensor:
        """The gradient of `join`: [I, T, H], 0 at padding that is not packed."""
        gradient = self._by_head(gradient_RD, 1)
        rows, heads, length = self.shape
        spread = gradient.new_zeros(rows * heads * length, gradient.shape[1])
        return spread.index_copy_(0, self._places_of_one, gradient).view(rows * heads, length, -1)

    @property
    def _places_of_one(self) -> Tensor:
        """Where the heads of the first of the S stand."""
        return self.places_RSN[:, 0].flatten()

    def _by_head(self, values: Tensor, number: int) -> Tensor:
        """[R, number * D] -> [R * number * N, H]."""
        return values.reshape(len(values) * number * self.shape[1], -1)
