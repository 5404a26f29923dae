"""A row's hidden states -> one vector for the whole row."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from bertcli.model.architecture import Architecture


class Pooler(nn.Module):
    """tanh(W h + b) of the first token, [CLS] (Devlin et al. 2019, section 3; in the original code only)."""

    def __init__(self, architecture: Architecture) -> None:
        super().__init__()
        self.dense = nn.Linear(architecture.hidden, architecture.hidden)

    def forward(self, first_BD: Tensor) -> Tensor:
        """The first token's hidden states -> pooled_BD."""
        return torch.tanh(self.dense(first_BD))
