"""The stack of layers: hidden states of tokens in, hidden states that know their context out."""

from __future__ import annotations

from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from bertcli.model.architecture import Architecture
from bertcli.model.attention import Attention, reads_packed
from bertcli.model.attention_written_out import is_written_out
from bertcli.model.dropout import drop_add_norm
from bertcli.model.feed_forward import FeedForward
from bertcli.model.packing import Packing, Wanted, take


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

    def forward(self, hidden_RD: Tensor, packing: Packing, wanted: Wanted | None = None) -> Tensor:
        """[R, D] -> [R, D]; `packing` says which rows the tokens belong to.

        Where only some tokens are wanted, the others are looked at but go no further: [K, D].
        """
        if wanted is None:
            return self._combine(hidden_RD, self.attention(hidden_RD, packing))
        asking_KD = take(hidden_RD, wanted.numbers_K)
        attended_KD = self.attention.forward_some(hidden_RD, packing, asking_KD, wanted)
        return self._combine(asking_KD, attended_KD)

    def trace(self, hidden_RD: Tensor, packing: Packing) -> tuple[Tensor, Tensor]:
        """As `forward`, with the attention probabilities_BNTT beside the result."""
        attended_RD, probabilities_BNTT = self.attention.trace(hidden_RD, packing)
        return self._combine(hidden_RD, attended_RD), probabilities_BNTT

    def _combine(self, hidden_RD: Tensor, attended_RD: Tensor) -> Tensor:
        dropout = self.dropout if self.training else 0.0
        hidden_RD = drop_add_norm(attended_RD, hidden_RD, self.attention_norm, dropout)
        return drop_add_norm(self.feed_forward(hidden_RD), hidden_RD, self.feed_forward_norm, dropout)


class Encoder(nn.Module):
    """`architecture.layers` layers, one after the other, over the real tokens alone.

    With `activation_checkpointing` set, a layer's activations are not kept for the backward pass but
    computed again (Chen et al. 2016): less memory, about a third more time, the same gradients to the bit.
    """

    def __init__(self, architecture: Architecture) -> None:
        super().__init__()
        self.layers = nn.ModuleList(EncoderLayer(architecture) for _ in range(architecture.layers))
        self.num_heads, self.head_size = architecture.heads, architecture.head_size
        self.activation_checkpointing = False

    def forward(self, hidden_BTD: Tensor, mask_BT: Tensor | None, wanted_K: Tensor | None = None) -> Tensor:
        """The last layer's output: [B, T, D], or [K, D] of the tokens that are wanted.

        Most of the last layer is then left out for all the others, which in pretraining are five of six.

        Args:
            mask_BT: bool, True at real tokens; None: no padding.
            wanted_K: int64, flat positions b * T + t of real tokens; None: all, and padding too.
        """
        packing = Packing.of(
            mask_BT,
            (hidden_BTD.shape[0], hidden_BTD.shape[1]),
            hidden_BTD.device,
            keep_packed=reads_packed(hidden_BTD, self.head_size),
            num_heads=self.num_heads if is_written_out(hidden_BTD) else None,
        )
        hidden_RD = packing.pack(hidden_BTD)
        *lower, last = self.layers
        for layer in lower:
            hidden_RD = self._run(layer, hidden_RD, packing)
        if wanted_K is None:
            return packing.unpack(self._run(last, hidden_RD, packing))
        return self._run(last, hidden_RD, packing, packing.want(wanted_K))

    def _run(self, layer: nn.Module, *inputs: Tensor | Packing | Wanted) -> Tensor:
        if self.activation_checkpointing and self.training:
            return checkpoint(layer, *inputs, use_reentrant=False, preserve_rng_state=True)
        return layer(*inputs)

    def trace(
        self, hidden_BTD: Tensor, mask_BT: Tensor | None
    ) -> tuple[tuple[Tensor, ...], tuple[Tensor, ...]]:
        """Every hidden state, the input first (layers + 1 of [B, T, D]), and every layer's attention
        probabilities (layers of [B, N, T, T])."""
        packing = Packing.of(mask_BT, (hidden_BTD.shape[0], hidden_BTD.shape[1]), hidden_BTD.device)
        hidden_RD = packing.pack(hidden_BTD)
        hidden_states, probabilities = [hidden_BTD], []
        for layer in self.layers:
            assert isinstance(layer, EncoderLayer)
            hidden_RD, probabilities_BNTT = layer.trace(hidden_RD, packing)
            hidden_states.append(packing.unpack(hidden_RD))
            probabilities.append(probabilities_BNTT)
        return tuple(hidden_states), tuple(probabilities)
