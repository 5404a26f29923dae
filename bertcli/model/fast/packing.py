"""Padded rows <-> only their real tokens, one after the other; replaces `encoder.lay_out`.

Padding then costs time only in attention, which is computed on padded rows.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from bertcli.model import encoder, seam
from bertcli.model.fast.attention import is_written_out
from bertcli.model.layer import Rows
from bertcli.model.seam import is_on


@dataclass(frozen=True)
class Packing(Rows):
    """The layout [R, D] of hidden states: the real tokens of a batch, one after the other.

    Attributes:
        shape: (B, T).
        places_R: int64, the flat positions b * T + t of the real tokens, and of some padding (`round_up`);
            None means all positions.
        numbers_BT: int64, the inverse: the index in `places_R` (0 at padding that is not in it).
        is_written_out: true if attention keeps its matrices (`fast.attention`).
        numbers_K: int64, in the last layer, which then gives [K, D]: the indices of the selected tokens
            among the R packed tokens; None means all tokens.
        queries: the packing of only their queries; None means that attention is computed for all queries.
    """

    shape: tuple[int, int] = (0, 0)
    places_R: Tensor | None = None
    numbers_BT: Tensor | None = None
    is_written_out: bool = False
    numbers_K: Tensor | None = None
    queries: Packing | None = None

    def pack(self, values_BTD: Tensor) -> Tensor:
        """Pack [B, T, D] -> [R, D]."""
        flat = values_BTD.flatten(0, 1)
        return flat if self.places_R is None else take_distinct(flat, self.places_R)

    def unpack(self, values: Tensor) -> Tensor:
        """Unpack [R, D] -> [B, T, D], with 0 at padding."""
        rows, length = self.shape
        if self.places_R is not None:
            values = _Scatter.apply(values, self.places_R, rows * length)
        return values.unflatten(0, self.shape)

    def in_last_layer(self, decoder: bool = False) -> Packing:
        """The packing with `numbers_K`, and with `queries` except in the decoder. Separate queries are faster
        with explicit attention; on a GPU, their count would make the program wait."""
        if self.selected_K is None or not (decoder or is_on("last_layer")):
            return self
        queries = None
        if self.is_written_out and len(self.selected_K) and not decoder:
            queries = side_by_side(self.selected_K // self.shape[1], self.shape[0])
        return replace(self, numbers_K=self.find(self.selected_K), queries=queries)

    def narrow(self, values_RD: Tensor) -> Tensor:
        """The values of `numbers_K`: [R, D] -> [K, D]."""
        return values_RD if self.numbers_K is None else take(values_RD, self.numbers_K)

    def put(self, values: Tensor, last: Tensor) -> Tensor:
        """The values, with `last` in place of those of the selected tokens.

        A token that is selected twice gets the gradient twice; tokens that `round_masked` adds have none.
        """
        return last if self.numbers_K is None else values.index_copy(0, self.numbers_K, last)

    def select(self, last: Tensor) -> Tensor:
        """The selected tokens [K, D] of the last layer's output; [R, D] if no tokens are selected."""
        if self.numbers_K is not None or self.selected_K is None:
            return last
        return take(last, self.find(self.selected_K))

    def find(self, places_K: Tensor) -> Tensor:
        """The indices numbers_K, among the R packed tokens, of real tokens at flat positions b * T + t."""
        return places_K if self.numbers_BT is None else self.numbers_BT.flatten()[places_K]


def pack_rows(hidden_BTD: Tensor, mask_BT: Tensor | None, selected_K: Tensor | None) -> Packing:
    """Compute `encoder.lay_out`: a packing of only the real tokens on a CPU, but of all positions on a GPU,
    where constant sizes are faster."""
    packing = Packing(
        encoder.attention_mask(mask_BT, hidden_BTD),
        selected_K,
        shape=(hidden_BTD.shape[0], hidden_BTD.shape[1]),
        is_written_out=is_written_out(hidden_BTD),
    )
    if mask_BT is None or hidden_BTD.device.type != "cpu" or not is_on("packing"):
        return packing
    places_R = real_places(mask_BT)
    return replace(packing, places_R=places_R, numbers_BT=_inverse(places_R, packing.shape))


def side_by_side(rows_K: Tensor, num_rows: int) -> Packing:
    """The packing of K tokens into rows that hold only these, in order; `rows_K` has the row of each token.
    All rows have the length of the longest."""
    counts_B = rows_K.bincount(minlength=num_rows)
    most = int(counts_B.max())
    by_row_K = rows_K.argsort(stable=True)
    sorted_K, before_B = rows_K[by_row_K], counts_B.cumsum(0) - counts_B
    places_K = torch.empty_like(rows_K)
    places_K[by_row_K] = sorted_K * most + torch.arange(len(rows_K)) - before_B[sorted_K]
    shape = num_rows, most
    return Packing(None, shape=shape, places_R=places_K, numbers_BT=_inverse(places_K, shape))


def real_places(mask_BT: Tensor) -> Tensor:
    """The flat positions of the real tokens, then of padding, up to `round_up` of their number: int64 [R]."""
    mask = mask_BT.flatten()
    real_K, padding = mask.nonzero().squeeze(1), (~mask).nonzero().squeeze(1)
    return torch.cat([real_K, padding[: round_up(len(real_K)) - len(real_K)]])


def _inverse(places_R: Tensor, shape: tuple[int, int]) -> Tensor:
    """The numbers_BT of these places."""
    numbers_BT = torch.zeros(shape, dtype=torch.int64)
    numbers_BT.view(-1)[places_R] = torch.arange(len(places_R))
    return numbers_BT


def round_up(number: int) -> int:
    """The number, rounded up to one of 16 sizes between two powers of 2.

    Batches of similar size then use the same memory and kernels. If each had its own size, freed memory would
    fit no later batch, and the heap would grow to a multiple of the memory in use.
    """
    step = 1 << max(0, number.bit_length() - 5)
    return -(-number // step) * step


def take(values_RD: Tensor, numbers_K: Tensor) -> Tensor:
    """Take some of the R rows, with repetitions: [K, D]."""
    if values_RD.device.type == "cpu":
        return values_RD.index_select(0, numbers_K)
    # The backward pass is deterministic. So is that of index_select, but it copies numbers_K to the CPU.
    return F.embedding(numbers_K, values_RD)


def take_distinct(values_RD: Tensor, numbers_K: Tensor) -> Tensor:
    """Take some of the R rows, each at most once: [K, D]."""
    return _Gather.apply(values_RD, numbers_K)  # pyright: ignore[reportReturnType]


class _Gather(torch.autograd.Function):
    """An `index_select` of distinct positions, without the row-by-row addition of torch's own backward."""

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
    """The inverse of `_Gather`: rows are put at distinct positions, with 0 elsewhere."""

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


seam.replace(encoder.lay_out, pack_rows, when=lambda *_, **named: is_on("packing") or is_on("last_layer"))
