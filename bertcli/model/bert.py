"""The body that every model of the family shares: ids in, hidden states out."""

from __future__ import annotations

from typing import NamedTuple

from torch import Tensor, nn

from bertcli.model.architecture import Architecture
from bertcli.model.embeddings import Embeddings
from bertcli.model.encoder import Encoder


class Trace(NamedTuple):
    """What a forward pass went through, for looking inside the model."""

    hidden_states: tuple[Tensor, ...]
    """layers + 1 of [B, T, D]: the embeddings, then each layer's output."""
    attention_probabilities: tuple[Tensor, ...]
    """layers of [B, N, T, T]: how much each token (row) looks at each token (column)."""


class Bert(nn.Module):
    """Embeddings and encoder (Devlin et al. 2019, section 3), without pooler or heads."""

    def __init__(self, architecture: Architecture) -> None:
        super().__init__()
        self.embeddings = Embeddings(architecture)
        self.encoder = Encoder(architecture)

    def forward(self, ids_BT: Tensor, segments_BT: Tensor, mask_BT: Tensor | None = None) -> Tensor:
        """`ids_BT`, `segments_BT` (int64), `mask_BT` (bool, True at real tokens, at least one a row;
        None: no padding) -> hidden_BTD. What stands at padding is without meaning."""
        return self.encoder(self.embeddings(ids_BT, segments_BT), mask_BT)

    def trace(self, ids_BT: Tensor, segments_BT: Tensor, mask_BT: Tensor | None = None) -> Trace:
        """As `forward`, keeping every layer's hidden states and attention probabilities."""
        return Trace(*self.encoder.trace(self.embeddings(ids_BT, segments_BT), mask_BT))
