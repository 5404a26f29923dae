"""The layer of ModernBERT: norms before attention and feed-forward, and a gate in the latter."""

from __future__ import annotations

from torch import Tensor, nn

from bertcli.model.architecture import Architecture
from bertcli.model.attention import Attention
from bertcli.model.fast.dropout import Dropout
from bertcli.model.feed_forward import ACTIVATIONS
from bertcli.model.layer import EncoderLayer


class GatedFeedForward(nn.Module):
    """D -> 2 F -> F -> D: the activation of one half times the other half (Shazeer 2020, "GeGLU")."""

    def __init__(self, architecture: Architecture) -> None:
        super().__init__()
        hidden, inner = architecture.hidden, architecture.feed_forward
        self.activation = ACTIVATIONS[architecture.activation]
        self.expand = nn.Linear(hidden, 2 * inner, bias=architecture.biases)
        self.dropout = Dropout(architecture.feed_forward_dropout)
        self.contract = nn.Linear(inner, hidden, bias=architecture.biases)

    def forward(self, hidden_BTD: Tensor) -> Tensor:
        """[..., D] -> [..., D]."""
        inner, gate = self.expand(hidden_BTD).chunk(2, dim=-1)
        return self.contract(self.dropout(self.activation(inner) * gate))


class PreNormLayer(EncoderLayer):
    """x + sublayer(LayerNorm(x)), for attention and feed-forward (Xiong et al. 2020; Warner et al. 2024,
    section 2.1). The first layer has no norm before attention: the embeddings end in one."""

    def __init__(self, architecture: Architecture, attention: Attention, is_first: bool) -> None:
        super().__init__(architecture, attention, GatedFeedForward(architecture))
        if is_first:
            self.attention_norm = nn.Identity()

    def before_attention(self, hidden_BTD: Tensor) -> Tensor:
        return self.attention_norm(hidden_BTD)

    def combine(self, hidden_BTD: Tensor, attended_BTD: Tensor) -> Tensor:
        hidden_BTD = hidden_BTD + self.attention_dropout(attended_BTD)
        return hidden_BTD + self.feed_forward(self.feed_forward_norm(hidden_BTD))
