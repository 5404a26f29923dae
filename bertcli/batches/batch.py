"""The rows of one forward pass, as tensors."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, replace
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from bertcli.tokenizer.frame import Row


@dataclass(frozen=True)
class Batch:
    """Rows of [CLS] A [SEP] B [SEP] (or [CLS] text [SEP]), padded on the right to the longest.

    Attributes:
        ids_BT: int64, tokens with some masked; [PAD] after the end of a row.
        segments_BT: int64, 0 for A and 1 for B and the [SEP] after it.
        lengths_B: int64, real tokens of each row; always on the CPU, where they are read.
        rows_M, columns_M: int64, the places of the masked tokens, in reading order.
        targets_M: int64, the original tokens.
        draws_M: float64 in [0, 1), from which a generator draws the words at these places; None: no generator
            draws.
        labels_B: int64, the labels of `registry.PairRule`; None for rows of one text.
    """

    ids_BT: Tensor
    segments_BT: Tensor
    lengths_B: Tensor
    rows_M: Tensor
    columns_M: Tensor
    targets_M: Tensor
    labels_B: Tensor | None
    draws_M: Tensor | None = None

    @property
    def num_rows(self) -> int:
        """Number of rows, B."""
        return len(self.lengths_B)

    @property
    def num_tokens(self) -> int:
        """Number of real tokens, without padding."""
        return int(self.lengths_B.sum())

    @property
    def num_masked(self) -> int:
        """Number of masked tokens, M."""
        return len(self.targets_M)

    @property
    def mask_BT(self) -> Tensor | None:
        """bool, True at real tokens, on the CPU; None if no row is padded."""
        length = self.ids_BT.shape[1]
        if bool((self.lengths_B == length).all()):
            return None
        return torch.arange(length) < self.lengths_B[:, None]

    @property
    def masked_M(self) -> Tensor:
        """int64, flat positions b * T + t of the masked tokens."""
        return self.rows_M * self.ids_BT.shape[1] + self.columns_M

    def without_masked(self) -> Batch:
        """The same inputs, as a batch in which no masked token is predicted."""
        empty = {name: getattr(self, name)[:0] for name in ("rows_M", "columns_M", "targets_M")}
        return replace(self, **empty)

    def to(self, device: torch.device) -> Batch:
        """The batch on a device; the lengths stay on the CPU."""
        moved = self._map(lambda tensor: tensor.to(device, non_blocking=True))
        return replace(moved, lengths_B=self.lengths_B)

    def pin_memory(self) -> Batch:
        """The batch in pinned memory, for asynchronous copies to a GPU; a loader calls this method."""
        return self._map(Tensor.pin_memory)

    def _map(self, function: Callable[[Tensor], Tensor]) -> Batch:
        named = ((field.name, getattr(self, field.name)) for field in fields(self))
        return replace(self, **{name: function(tensor) for name, tensor in named if tensor is not None})


class RowBatch(NamedTuple):
    """Rows padded to the longest: the inputs of a model, in order.

    Attributes:
        ids_BT: int64, padding after the end of a row.
        segments_BT: int64, the segments of `tokenizer.frame.Frame`.
        mask_BT: bool, True at real tokens, on the CPU; None if no row is padded.
    """

    ids_BT: Tensor
    segments_BT: Tensor
    mask_BT: Tensor | None


def batch_of(rows: Sequence[Row], pad_id: int, device: torch.device) -> RowBatch:
    """The rows as tensors on `device`."""
    lengths_B = np.array([row.length for row in rows])
    positions_T = np.arange(lengths_B.max())
    mask_BT = positions_T < lengths_B[:, None]
    ids_BT = np.full(mask_BT.shape, pad_id)
    ids_BT[mask_BT] = np.concatenate([row.ids for row in rows])
    segments_BT = (positions_T >= np.array([row.second_starts for row in rows])[:, None]) & mask_BT
    return RowBatch(
        torch.from_numpy(ids_BT).to(device),
        torch.from_numpy(segments_BT).long().to(device),
        None if mask_BT.all() else torch.from_numpy(mask_BT),
    )
