"""Token ids and segments -> the encoder's input: three embeddings added, normalized, dropped out."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from bertcli.model.architecture import Architecture
from bertcli.model.dropout import Dropout


class Embeddings(nn.Module):
    """Word + learned position + segment (Devlin et al. 2019, section 3, figure 2)."""

    def __init__(self, architecture: Architecture) -> None:
        super().__init__()
        self.word = nn.Embedding(architecture.vocab_size, architecture.hidden)
        self.position = nn.Embedding(architecture.max_positions, architecture.hidden)
        self.segment = nn.Embedding(architecture.num_segments, architecture.hidden)
        self.norm = nn.LayerNorm(architecture.hidden, eps=architecture.layer_norm_eps)
        self.dropout = Dropout(architecture.dropout)

    def forward(self, ids_BT: Tensor, segments_BT: Tensor) -> Tensor:
        """`ids_BT` and `segments_BT` (int64) -> hidden_BTD.

        Raises `ValueError` where T exceeds the model's positions.
        """
        num_tokens, max_positions = ids_BT.shape[1], self.position.num_embeddings
        if num_tokens > max_positions:
            raise ValueError(f"rows of {num_tokens} tokens, but the model has {max_positions} positions")
        positions_T = torch.arange(num_tokens, device=ids_BT.device)
        # The order of this sum is the original's: another one differs in the last bit.
        hidden_BTD = self.word(ids_BT) + self.segment(segments_BT) + self.position(positions_T)
        return self.dropout(self.norm(hidden_BTD))


def tile_positions(table_TD: Tensor, known: int) -> Tensor:
    """A position table in which every position from `known` on has the embedding of a trained one, in turn.

    What was learned about neighbors on rows of `known` tokens then holds further on as well, but where
    two copies meet (Beltagy et al. 2020, "Longformer", section 5). [CLS]'s position is not copied.
    """
    beyond_T = torch.arange(known, len(table_TD), device=table_TD.device)
    return torch.cat([table_TD[:known], table_TD[1 + (beyond_T - 1) % (known - 1)]])
