"""The position-wise feed-forward network: for each token, to a wider layer and back."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from bertcli.model.architecture import Architecture

ACTIVATIONS: dict[str, Callable[[Tensor], Tensor]] = {
    "gelu": F.gelu,
    "gelu_tanh": partial(F.gelu, approximate="tanh"),
    "relu": F.relu,
    "tanh": torch.tanh,
}
"""By their names in `Architecture` and `families.family.Head`. GELU (Hendrycks and Gimpel 2016) is exact, by
the error function, or their approximation by tanh."""


class FeedForward(nn.Module):
    """D -> F -> D (Vaswani et al. 2017, section 3.3) with GELU in place of ReLU (Devlin et al. 2019,
    appendix A.2)."""

    def __init__(self, architecture: Architecture) -> None:
        super().__init__()
        self.activation = ACTIVATIONS[architecture.activation]
        self.expand = nn.Linear(architecture.hidden, architecture.feed_forward)
        self.contract = nn.Linear(architecture.feed_forward, architecture.hidden)

    def forward(self, hidden_BTD: Tensor) -> Tensor:
        """[..., D] -> [..., D]."""
        return self.contract(self.activation(self.expand(hidden_BTD)))
