"""Token ids and segments -> the encoder's input: the sum of embeddings, LayerNorm, dropout."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from bertcli.model.architecture import Architecture
from bertcli.model.fast.dropout import Dropout
from bertcli.model.norm import layer_norm


class Embeddings(nn.Module):
    """Word + learned position + segment (Devlin et al. 2019, section 3, figure 2).

    Embeddings narrower than the layers are widened at the end (Lan et al. 2020, section 3.1).
    """

    def __init__(self, architecture: Architecture) -> None:
        super().__init__()
        sizes, width = architecture, architecture.embedding or architecture.hidden
        self.word = nn.Embedding(sizes.vocab_size, width)
        self.position = nn.Embedding(sizes.max_positions, width) if sizes.position_table else None
        self.segment = nn.Embedding(sizes.num_segments, width) if sizes.num_segments else None
        self.norm = layer_norm(sizes, width)
        self.dropout = Dropout(sizes.dropout)
        self.widen = nn.Linear(width, sizes.hidden) if sizes.embedding else None
        self.position_offset, self.usable_positions = sizes.position_offset, sizes.usable_positions

    def forward(self, ids_BT: Tensor, segments_BT: Tensor) -> Tensor:
        """`ids_BT` and `segments_BT` (int64; ignored by a model with one segment or none) -> hidden_BTD.

        Raises `ValueError` if T exceeds the model's positions.
        """
        num_tokens, usable = ids_BT.shape[1], self.usable_positions
        if num_tokens > usable:
            raise ValueError(f"rows of {num_tokens} tokens, but the model has {usable} positions")
        # The order of this sum is that of the original: another order differs in the last bit.
        hidden_BTD = self.word(ids_BT)
        if self.segment is not None:
            hidden_BTD = hidden_BTD + self.segment(segments_BT.clamp(max=self.segment.num_embeddings - 1))
        if self.position is not None:
            positions_T = torch.arange(num_tokens, device=ids_BT.device) + self.position_offset
            hidden_BTD = hidden_BTD + self.position(positions_T)
        hidden_BTD = self.dropout(self.norm(hidden_BTD))
        return hidden_BTD if self.widen is None else self.widen(hidden_BTD)
