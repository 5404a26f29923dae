"""The body that every model shares: ids in, hidden states out."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor, nn

from bertcli.model.architecture import Architecture
from bertcli.model.embeddings import Embeddings
from bertcli.model.encoder import Encoder
from bertcli.model.fast.switch import plain_path


class Trace(NamedTuple):
    """What a forward pass went through, for looking inside the model."""

    hidden_states: tuple[Tensor, ...]
    """layers + 1 of [B, T, D]: the embeddings, then each layer's output."""
    attention_probabilities: tuple[Tensor, ...]
    """layers of [B, N, T, T]: how much each token (row) looks at each token (column)."""


def first_tokens(ids_BT: Tensor) -> Tensor:
    """int64 [B]: the flat positions of the rows' first tokens, whose hidden states stand for the rows."""
    return torch.arange(0, ids_BT.numel(), ids_BT.shape[1], device=ids_BT.device)


class Body(nn.Module):
    """Embeddings and encoder (Devlin et al. 2019, section 3), without pooler or heads."""

    def __init__(self, architecture: Architecture) -> None:
        super().__init__()
        self.embeddings = Embeddings(architecture)
        self.encoder = Encoder(architecture)

    def forward(
        self,
        ids_BT: Tensor,
        segments_BT: Tensor,
        mask_BT: Tensor | None = None,
        selected_K: Tensor | None = None,
    ) -> Tensor:
        """`ids_BT`, `segments_BT` (int64), `mask_BT` (bool, True at real tokens, at least one a row;
        None: no padding) -> hidden_BTD. What stands at padding is without meaning.

        With `selected_K` (int64, flat positions b * T + t of real tokens) only hidden_KD, which is less work.
        """
        return self.encoder(_narrow(self.embeddings(ids_BT, segments_BT)), mask_BT, selected_K)

    def trace(self, ids_BT: Tensor, segments_BT: Tensor, mask_BT: Tensor | None = None) -> Trace:
        """As `forward` on the plain path, keeping every layer's hidden states and attention probabilities."""
        with plain_path():
            return Trace(*self.encoder.trace(_narrow(self.embeddings(ids_BT, segments_BT)), mask_BT))


def _narrow(hidden_BTD: Tensor) -> Tensor:
    """In mixed precision what goes from layer to layer is in 16 bits as well, and nothing is cast to and fro.

    The embeddings are not: a frequent word's gradient is a sum of hundreds.
    """
    device = hidden_BTD.device.type
    return (
        hidden_BTD.to(torch.get_autocast_dtype(device)) if torch.is_autocast_enabled(device) else hidden_BTD
    )
