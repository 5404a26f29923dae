"""What padding costs: a model that computes every row as one of maximal length."""

from __future__ import annotations

import torch.nn.functional as F
from torch import Tensor, nn


class Padded(nn.Module):
    """Takes the time of a model that pads every row to `length`; its outputs are meaningless."""

    def __init__(self, model: nn.Module, length: int):
        super().__init__()
        self.model, self.length = model, length

    def forward(self, ids_BT: Tensor, segments_BT: Tensor, mask_BT: Tensor | None) -> Tensor:
        """`mask_BT` is not passed on: with it the model would find the padding and skip it."""
        length = ids_BT.shape[1]
        missing = (0, self.length - length)
        logits = self.model(F.pad(ids_BT, missing), F.pad(segments_BT, missing), None)
        return logits[:, :length] if logits.ndim == 3 else logits
