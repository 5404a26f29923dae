"""The stack of layers: hidden states of tokens in, hidden states that know their context out."""

from __future__ import annotations

from typing import Any

import torch.nn.functional as F
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from bertcli.model.architecture import Architecture
from bertcli.model.attention import Attention
from bertcli.model.fast import drop_add_norm as fast_norm
from bertcli.model.fast import encoder as fast_encoder
from bertcli.model.fast.switch import replaced_by
from bertcli.model.feed_forward import FeedForward


@replaced_by(fast_norm.drop_add_norm, when=fast_norm.is_faster)
def drop_add_norm(values: Tensor, residual: Tensor, norm: nn.LayerNorm, probability: float) -> Tensor:
    """LayerNorm(residual + Dropout(values)); all of them [..., D], and the result in the values' dtype."""
    return norm(residual + F.dropout(values, probability)).to(values.dtype)  # fp32 under CUDA's autocast


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
        self.dropout = architecture.dropout

    @replaced_by(fast_encoder.run_layer, when=fast_encoder.is_packed)
    def forward(self, hidden_BTD: Tensor, mask_B11T: Tensor | None) -> Tensor:
        """[B, T, D] -> [B, T, D]; `mask_B11T` as in `attention.attend`."""
        return self.combine(hidden_BTD, self.attention(hidden_BTD, mask_B11T))

    def combine(self, hidden_BTD: Tensor, attended_BTD: Tensor) -> Tensor:
        """What follows attention, for each token by itself."""
        dropout = self.dropout if self.training else 0.0
        hidden_BTD = drop_add_norm(attended_BTD, hidden_BTD, self.attention_norm, dropout)
        return drop_add_norm(self.feed_forward(hidden_BTD), hidden_BTD, self.feed_forward_norm, dropout)


class Encoder(nn.Module):
    """`architecture.layers` layers, one after the other.

    With `activation_checkpointing` set, a layer's activations are not kept for the backward pass but
    computed again (Chen et al. 2016): less memory, about a third more time, the same gradients to the bit.
    """

    def __init__(self, architecture: Architecture) -> None:
        super().__init__()
        self.layers = nn.ModuleList(EncoderLayer(architecture) for _ in range(architecture.layers))
        self.activation_checkpointing = False

    @replaced_by(fast_encoder.encode, when=fast_encoder.is_faster)
    def forward(self, hidden_BTD: Tensor, mask_BT: Tensor | None, selected_K: Tensor | None = None) -> Tensor:
        """The last layer's output: [B, T, D], or [K, D] of the tokens that are selected.

        Args:
            mask_BT: bool, True at real tokens; None: no padding.
            selected_K: int64, flat positions b * T + t of real tokens; None: all, and padding too.
        """
        for layer in self.layers:
            hidden_BTD = self.run(layer, hidden_BTD, _for_attention(mask_BT, hidden_BTD))
        return hidden_BTD if selected_K is None else hidden_BTD.flatten(0, 1)[selected_K]

    def run(self, layer: nn.Module, *inputs: Any) -> Tensor:
        """One layer, with or without activation checkpointing."""
        if self.activation_checkpointing and self.training:
            return checkpoint(layer, *inputs, use_reentrant=False, preserve_rng_state=True)
        return layer(*inputs)

    def trace(
        self, hidden_BTD: Tensor, mask_BT: Tensor | None
    ) -> tuple[tuple[Tensor, ...], tuple[Tensor, ...]]:
        """Every hidden state, the input first (layers + 1 of [B, T, D]), and every layer's attention
        probabilities (layers of [B, N, T, T])."""
        mask_B11T = _for_attention(mask_BT, hidden_BTD)
        hidden_states, probabilities = [hidden_BTD], []
        for layer in self.layers:
            assert isinstance(layer, EncoderLayer)
            probabilities.append(layer.attention.probabilities(hidden_states[-1], mask_B11T))
            hidden_states.append(layer(hidden_states[-1], mask_B11T))
        return tuple(hidden_states), tuple(probabilities)


def _for_attention(mask_BT: Tensor | None, hidden_BTD: Tensor) -> Tensor | None:
    """-> mask_B11T, on the device of the hidden states."""
    return None if mask_BT is None else mask_BT.to(hidden_BTD.device)[:, None, None, :]
