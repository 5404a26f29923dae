"""One layer of the encoder: attention, then the feed-forward network."""

from __future__ import annotations

from torch import Tensor, nn

from bertcli.model.architecture import Architecture
from bertcli.model.attention import Attention
from bertcli.model.fast import encoder as fast_encoder
from bertcli.model.fast.dropout import Dropout
from bertcli.model.fast.switch import replaced_by
from bertcli.model.norm import layer_norm


class EncoderLayer(nn.Module):
    """Attention, then feed-forward, each as LayerNorm(x + Dropout(sublayer(x))).

    The norm is after the sum ("post-LayerNorm"), as in Vaswani et al. 2017, section 3.1.
    """

    def __init__(self, architecture: Architecture, attention: Attention, feed_forward: nn.Module) -> None:
        super().__init__()
        self.attention = attention
        self.attention_norm = layer_norm(architecture)
        self.feed_forward = feed_forward
        self.feed_forward_norm = layer_norm(architecture)
        self.dropout = Dropout(architecture.dropout)
        rate = architecture.attention_output_dropout
        self.attention_dropout = self.dropout if rate is None else Dropout(rate)

    @replaced_by(fast_encoder.run_layer, when=fast_encoder.is_packed)
    def forward(
        self, hidden_BTD: Tensor, mask_B11T: Tensor | None, *shared: Tensor, queries_BTD: Tensor | None = None
    ) -> Tensor:
        """[B, T, D] -> [B, T, D]; `mask_B11T` as in `attention.attend`, `shared`: what `Encoder.shared` gives
        to the attention of all layers. `queries_BTD`: what attends to the tokens; None: themselves."""
        attended_BTD = self.attention(
            self.before_attention(hidden_BTD), mask_B11T, *shared, queries_BTD=queries_BTD
        )
        return self.combine(hidden_BTD if queries_BTD is None else queries_BTD, attended_BTD)

    def before_attention(self, hidden_BTD: Tensor) -> Tensor:
        """The input of attention, for each token by itself."""
        return hidden_BTD

    def combine(self, hidden_BTD: Tensor, attended_BTD: Tensor) -> Tensor:
        """The part after attention, for each token by itself."""
        dtype = hidden_BTD.dtype  # under CUDA's autocast a norm returns fp32
        hidden_BTD = self.attention_norm(hidden_BTD + self.attention_dropout(attended_BTD)).to(dtype)
        return self.feed_forward_norm(hidden_BTD + self.dropout(self.feed_forward(hidden_BTD))).to(dtype)
