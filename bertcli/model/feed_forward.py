"""The position-wise feed-forward network: for each token, to a wider layer and back."""

from __future__ import annotations

import torch.nn.functional as F
from torch import Tensor, nn

from bertcli.model.architecture import Architecture


class FeedForward(nn.Module):
    """D -> F -> D (Vaswani et al. 2017, section 3.3) with the exact, erf-based GELU
    (Hendrycks and Gimpel 2016) in place of ReLU (Devlin et al. 2019, appendix A.2)."""

    def __init__(self, architecture: Architecture) -> None:
        super().__init__()
        self.expand = nn.Linear(architecture.hidden, architecture.feed_forward)
        self.contract = nn.Linear(architecture.feed_forward, architecture.hidden)

    def forward(self, hidden_BTD: Tensor) -> Tensor:
        """[..., D] -> [..., D]."""
        return self.contract(F.gelu(self.expand(hidden_BTD)))
