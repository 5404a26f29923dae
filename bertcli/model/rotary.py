"""ModernBERT's attention, with rotary positions and, in local layers, a window; and its layer."""

import torch
from torch import Tensor, nn

from bertcli.model import layer
from bertcli.model.architecture import Architecture
from bertcli.model.layer import ACTIVATIONS, Attention, Dropout, EncoderLayer, Heads
from bertcli.model.seam import replaceable


class RotaryAttention(Attention):
    """Attention whose queries and keys are rotated by angles that grow with their place, so that positions
    enter a score only as their distance (Su et al. 2021, section 3.2.2). A local layer attends to `window`
    tokens to each side (Warner et al. 2024, section 2.1)."""

    any_queries = False

    def __init__(self, architecture: Architecture, number: int) -> None:
        """Build the attention of the layer `number`, from 0."""
        super().__init__(architecture)
        assert architecture.rotary_bases is not None
        is_local = architecture.local_layers[number]
        self.base = architecture.rotary_bases[is_local]
        self.window = architecture.window if is_local else None

    def attend(self, heads: Heads, mask_B11T: Tensor | None, *shared: Tensor) -> Tensor:
        """The context of `Attention.attend`; all queries of the rows are needed (W = T)."""
        inputs = rotate(heads.query_BNWH, self.base), rotate(heads.key_BNTH, self.base), heads.value_BNTH
        if self.window is None:
            return layer.attend(*inputs, mask_B11T=mask_B11T, dropout=self.dropout_now)
        return attend_window(*inputs, mask_B11T=mask_B11T, window=self.window, dropout=self.dropout_now)

    def probabilities(self, hidden_BTD: Tensor, mask_B11T: Tensor | None, *shared: Tensor) -> Tensor:
        query_BNTH, key_BNTH = (
            rotate(self.split_heads(project(hidden_BTD)), self.base) for project in (self.query, self.key)
        )
        mask = mask_B11T if self.window is None else window_mask(mask_B11T, self.window, like=key_BNTH)
        return layer.attention_probabilities(query_BNTH, key_BNTH, mask)


def rotate(values_BNTH: Tensor, base: float) -> Tensor:
    """Rotate the pair (x_h, x_(h + H/2)) of the token t by the angle t * base ** (-2 h / H), in fp32."""
    (num_tokens, size), device = values_BNTH.shape[-2:], values_BNTH.device
    frequencies_P = base ** -(torch.arange(0, size, 2, device=device, dtype=torch.float32) / size)
    angles_TP = torch.arange(num_tokens, device=device, dtype=torch.float32)[:, None] * frequencies_P
    cos_TP, sin_TP = angles_TP.cos(), angles_TP.sin()
    first_BNTP, second_BNTP = values_BNTH.float().chunk(2, dim=-1)
    turned_BNTH = torch.cat(
        [first_BNTP * cos_TP - second_BNTP * sin_TP, second_BNTP * cos_TP + first_BNTP * sin_TP], dim=-1
    )
    return turned_BNTH.to(values_BNTH.dtype)


@replaceable
def attend_window(
    query_BNTH: Tensor,
    key_BNTH: Tensor,
    value_BNTH: Tensor,
    mask_B11T: Tensor | None,
    window: int,
    dropout: float,
) -> Tensor:
    """The context of `layer.attend`, where each token attends to at most `window` tokens to each side."""
    mask_B1TT = window_mask(mask_B11T, window, like=key_BNTH)
    return layer.attend(query_BNTH, key_BNTH, value_BNTH, mask_B11T=mask_B1TT, dropout=dropout)


def window_mask(mask_B11T: Tensor | None, window: int, like: Tensor) -> Tensor:
    """The mask bool [B or 1, 1, T, T]: a token (row) attends to real tokens (columns) nearby and to itself.

    Padding far from all real tokens attends only to itself, because a softmax over nothing is NaN.
    """
    places_T = torch.arange(like.shape[-2], device=like.device)
    distance_TT = (places_T[:, None] - places_T).abs()
    near_TT = distance_TT <= window
    if mask_B11T is None:
        return near_TT[None, None]
    return (mask_B11T & near_TT) | (distance_TT == 0)


class GatedFeedForward(nn.Module):
    """The network D -> 2 F -> F -> D: activation(one half) * the other half (Shazeer 2020, "GeGLU")."""

    def __init__(self, architecture: Architecture) -> None:
        super().__init__()
        hidden, inner = architecture.hidden, architecture.feed_forward
        self.activation = ACTIVATIONS[architecture.activation]
        self.expand = nn.Linear(hidden, 2 * inner, bias=architecture.biases)
        self.dropout = Dropout(architecture.feed_forward_dropout)
        self.contract = nn.Linear(inner, hidden, bias=architecture.biases)

    def forward(self, hidden_BTD: Tensor) -> Tensor:
        """Apply the network to each token: [..., D] -> [..., D]."""
        inner, gate = self.expand(hidden_BTD).chunk(2, dim=-1)
        return self.contract(self.dropout(self.activation(inner) * gate))


class PreNormLayer(EncoderLayer):
    """A layer of x + sublayer(LayerNorm(x)), for attention and feed-forward (Xiong et al. 2020; Warner et al.
    2024, section 2.1). The first layer has no norm before attention, because the embeddings end in one."""

    def __init__(self, architecture: Architecture, attention: Attention, is_first: bool) -> None:
        super().__init__(architecture, attention, GatedFeedForward(architecture))
        if is_first:
            self.attention_norm = nn.Identity()

    def before_attention(self, hidden_BTD: Tensor) -> Tensor:
        return self.attention_norm(hidden_BTD)

    def combine(self, hidden_BTD: Tensor, attended_BTD: Tensor) -> Tensor:
        hidden_BTD = hidden_BTD + self.attention_dropout(attended_BTD)
        return hidden_BTD + self.feed_forward(self.feed_forward_norm(hidden_BTD))
