"""A convolution over neighboring tokens beside the first layer, as in DeBERTa-v2 xlarge and xxlarge.

In the released code and models only (microsoft/DeBERTa, version 2), to learn of parts of words.
"""

from __future__ import annotations

from torch import Tensor, nn

from bertcli.families.relative import Convolution
from bertcli.model.architecture import Architecture
from bertcli.model.fast.dropout import Dropout
from bertcli.model.feed_forward import ACTIVATIONS


class ConvolutionLayer(nn.Module):
    """LayerNorm(first layer's output + activation(Dropout(convolution(embeddings))))."""

    def __init__(self, architecture: Architecture, sizes: Convolution) -> None:
        super().__init__()
        hidden = architecture.hidden
        self.convolve = nn.Conv1d(hidden, hidden, sizes.width, padding=sizes.width // 2, groups=sizes.groups)
        self.activation = ACTIVATIONS[sizes.activation]
        self.dropout = Dropout(architecture.dropout)
        self.norm = nn.LayerNorm(hidden, eps=architecture.layer_norm_eps)

    def forward(self, embedded_BTD: Tensor, mask_BT: Tensor | None) -> Tensor:
        """The embeddings [B, T, D] -> what `add` adds [B, T, D]. Padding counts as zeros."""
        if mask_BT is not None:
            embedded_BTD = embedded_BTD * mask_BT[..., None].to(embedded_BTD)
        return self.activation(self.dropout(self.convolve(embedded_BTD.mT).mT))

    def add(self, hidden_BTD: Tensor, convolved_BTD: Tensor) -> Tensor:
        """-> the second layer's input, for each token by itself."""
        return self.norm(hidden_BTD + convolved_BTD).to(hidden_BTD.dtype)
