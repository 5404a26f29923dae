"""The stack of layers: hidden states of tokens in, hidden states that know their context out."""

from __future__ import annotations

from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from bertcli.model.architecture import Architecture
from bertcli.model.attention import Attention
from bertcli.model.feed_forward import FeedForward


class EncoderLayer(nn.Module):
    """Attention, then feed-forward, each as LayerNorm(x + Dropout(sublayer(x))).

    The norm stands after the sum ("post-LayerNorm"), as in Vaswani et al. 2017, section 3.1.
    """

    def __init__(self, architecture: Architecture) -> None:
        super().__init__()
        self.attention = Attention(architecture)
        self.attention_norm = nn.LayerNorm(architecture.hidden, eps=architecture.layer_norm_eps)
        self.feed_forward = FeedForward(architecture)
        self.feed_forward_norm = nn.LayerNorm(architecture.hidden, eps=architecture.layer_norm_eps)
        self.dropout = nn.Dropout(architecture.dropout)

    def forward(self, hidden_BTD: Tensor, mask_B11T: Tensor | None) -> Tensor:
        """`mask_B11T` (bool): True at real tokens; None: no padding. Returns [B, T, D]."""
        return self._combine(hidden_BTD, self.attention(hidden_BTD, mask_B11T))

    def trace(self, hidden_BTD: Tensor, mask_B11T: Tensor | None) -> tuple[Tensor, Tensor]:
        """As `forward`, with the attention probabilities_BNTT beside the result."""
        attended_BTD, probabilities_BNTT = self.attention.trace(hidden_BTD, mask_B11T)
        return self._combine(hidden_BTD, attended_BTD), probabilities_BNTT

    def _combine(self, hidden_BTD: Tensor, attended_BTD: Tensor) -> Tensor:
        hidden_BTD = self.attention_norm(hidden_BTD + self.dropout(attended_BTD))
        return self.feed_forward_norm(hidden_BTD + self.dropout(self.feed_forward(hidden_BTD)))


class Encoder(nn.Module):
    """`architecture.layers` layers, one after the other.

    With `activation_checkpointing` set, a layer's activations are not kept for the backward pass but
    computed again (Chen et al. 2016): less memory, about a third more time, the same gradients to the bit.
    """

    def __init__(self, architecture: Architecture) -> None:
        super().__init__()
        self.layers = nn.ModuleList(EncoderLayer(architecture) for _ in range(architecture.layers))
        self.activation_checkpointing = False

    def forward(self, hidden_BTD: Tensor, mask_B11T: Tensor | None) -> Tensor:
        """`mask_B11T` (bool): True at real tokens; None: no padding. Returns the last [B, T, D]."""
        for layer in self.layers:
            if self.activation_checkpointing and self.training:
                hidden_BTD = checkpoint(
                    layer, hidden_BTD, mask_B11T, use_reentrant=False, preserve_rng_state=True
                )
            else:
                hidden_BTD = layer(hidden_BTD, mask_B11T)
        return hidden_BTD

    def trace(
        self, hidden_BTD: Tensor, mask_B11T: Tensor | None
    ) -> tuple[tuple[Tensor, ...], tuple[Tensor, ...]]:
        """Every hidden state, the input first (layers + 1 of [B, T, D]), and every layer's attention
        probabilities (layers of [B, N, T, T])."""
        hidden_states, probabilities = [hidden_BTD], []
        for layer in self.layers:
            assert isinstance(layer, EncoderLayer)
            hidden_BTD, probabilities_BNTT = layer.trace(hidden_BTD, mask_B11T)
            hidden_states.append(hidden_BTD)
            probabilities.append(probabilities_BNTT)
        return tuple(hidden_states), tuple(probabilities)
