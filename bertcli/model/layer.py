"""One layer of the encoder: attention to the other tokens, then a feed-forward network on each."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import ClassVar, NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from bertcli.model.architecture import Architecture
from bertcli.model.seam import replaceable


def layer_norm(architecture: Architecture, width: int | None = None) -> nn.LayerNorm:
    """The LayerNorm of `width` values; None means the hidden size."""
    return nn.LayerNorm(
        width or architecture.hidden, eps=architecture.layer_norm_eps, bias=architecture.biases
    )


class Dropout(nn.Dropout):
    """Dropout (Srivastava et al. 2014): in training, each element is 0 with probability `p`, else scaled so
    that the mean does not change."""

    @replaceable
    def forward(self, input: Tensor) -> Tensor:
        """Drop elements of `input` [...] -> [...]."""
        return super().forward(input)


def attention_probabilities(query_BNTH: Tensor, key_BNTH: Tensor, mask_B11T: Tensor | None) -> Tensor:
    """The weights softmax(Q K^T / sqrt(H)) of each token (row) for each token (column): [B, N, T, T].

    `mask_B11T` (bool) is True at real tokens; None means no padding.
    """
    scores_BNTT = query_BNTH @ key_BNTH.mT / math.sqrt(query_BNTH.shape[-1])
    if mask_B11T is not None:
        scores_BNTT = scores_BNTT.masked_fill(~mask_B11T, float("-inf"))
    return scores_BNTT.softmax(dim=-1)


@replaceable
def attend(
    query_BNTH: Tensor, key_BNTH: Tensor, value_BNTH: Tensor, mask_B11T: Tensor | None, dropout: float
) -> Tensor:
    """Attention: softmax(Q K^T / sqrt(H)) V, equation 1 of Vaswani et al. 2017: [B, N, T, H].

    `dropout` is applied to the probabilities, as in BERT.
    """
    return F.dropout(attention_probabilities(query_BNTH, key_BNTH, mask_B11T), dropout) @ value_BNTH


class Heads(NamedTuple):
    """The inputs of attention, split into heads: W queries of each row, keys and values of all its tokens."""

    query_BNWH: Tensor
    key_BNTH: Tensor
    value_BNTH: Tensor


class Attention(nn.Module):
    """Multi-head self-attention (Vaswani et al. 2017, section 3.2.2) with its output projection."""

    any_queries: ClassVar[bool] = True
    """True if `attend` may get the queries of a few tokens, because the result ignores their places."""

    def __init__(self, architecture: Architecture) -> None:
        super().__init__()
        self.head_size = architecture.head_size
        self.dropout = architecture.attention_dropout
        hidden, biases = architecture.hidden, architecture.biases
        self.query = nn.Linear(hidden, hidden, bias=biases)
        self.key = nn.Linear(hidden, hidden, bias=biases)
        self.value = nn.Linear(hidden, hidden, bias=biases)
        self.output = nn.Linear(hidden, hidden, bias=biases)

    def forward(
        self, hidden_BTD: Tensor, mask_B11T: Tensor | None, *shared: Tensor, queries_BTD: Tensor | None = None
    ) -> Tensor:
        """Attend [B, T, D] -> [B, T, D]. `shared` comes from `Encoder.shared`; `queries_BTD` replaces the
        hidden states as the input of the queries."""
        query_BNTH = self.split_heads(self.query(hidden_BTD if queries_BTD is None else queries_BTD))
        key_BNTH, value_BNTH = (self.split_heads(layer(hidden_BTD)) for layer in (self.key, self.value))
        context_BNTH = self.attend(Heads(query_BNTH, key_BNTH, value_BNTH), mask_B11T, *shared)
        return self.output(self.join_heads(context_BNTH))

    def attend(self, heads: Heads, mask_B11T: Tensor | None, *shared: Tensor) -> Tensor:
        """The context [B, N, W, H]; each kind of attention has its own function here."""
        return attend(*heads, mask_B11T=mask_B11T, dropout=self.dropout_now)

    def probabilities(self, hidden_BTD: Tensor, mask_B11T: Tensor | None, *shared: Tensor) -> Tensor:
        """The probabilities_BNTT of hidden states [B, T, D]: the weights of `forward` before dropout."""
        query_BNTH, key_BNTH = (self.split_heads(layer(hidden_BTD)) for layer in (self.query, self.key))
        return attention_probabilities(query_BNTH, key_BNTH, mask_B11T)

    @property
    def dropout_now(self) -> float:
        return self.dropout if self.training else 0.0

    def split_heads(self, projected_BTD: Tensor) -> Tensor:
        """Split [B, T, D] into heads -> [B, N, T, H]."""
        return projected_BTD.unflatten(-1, (-1, self.head_size)).transpose(1, 2)

    def join_heads(self, context_BNTH: Tensor) -> Tensor:
        """Join heads [B, N, T, H] -> [B, T, D]."""
        return context_BNTH.transpose(1, 2).flatten(-2)


ACTIVATIONS: dict[str, Callable[[Tensor], Tensor]] = {
    "gelu": F.gelu,
    "gelu_tanh": partial(F.gelu, approximate="tanh"),
    "relu": F.relu,
    "tanh": torch.tanh,
}
"""Activations by their names in `Architecture` and `families.family.Head`. GELU (Hendrycks and Gimpel 2016)
is exact, with the error function, or approximated with tanh."""


class FeedForward(nn.Module):
    """The feed-forward network D -> F -> D (Vaswani et al. 2017, section 3.3), with GELU in place of ReLU
    (Devlin et al. 2019, appendix A.2)."""

    def __init__(self, architecture: Architecture) -> None:
        super().__init__()
        self.activation = ACTIVATIONS[architecture.activation]
        self.expand = nn.Linear(architecture.hidden, architecture.feed_forward)
        self.contract = nn.Linear(architecture.feed_forward, architecture.hidden)

    def forward(self, hidden_BTD: Tensor) -> Tensor:
        """Apply the network to each token: [..., D] -> [..., D]."""
        return self.contract(self.activation(self.expand(hidden_BTD)))


@dataclass(frozen=True)
class Rows:
    """The rows of a batch and the layout of hidden states: here [B, T, D] with padding.

    Attributes:
        mask_B11T: bool, True at real tokens, for attention; None means no padding.
        selected_K: int64, flat positions b * T + t of the real tokens whose last hidden states are needed;
            None means all tokens and padding.
    """

    mask_B11T: Tensor | None
    selected_K: Tensor | None = None

    def pack(self, values_BTD: Tensor) -> Tensor:
        """Convert [B, T, D] to the layout of the layers."""
        return values_BTD

    def unpack(self, values: Tensor) -> Tensor:
        """Convert the layout of the layers to [B, T, D], the inverse of `pack`."""
        return values

    def in_last_layer(self, decoder: bool = False) -> Rows:
        """The rows for the last layer, which may compute only the selected tokens; with `decoder`, it gets
        the queries of `encoder.MaskDecoder`."""
        return self

    def put(self, values: Tensor, last: Tensor) -> Tensor:
        """The `values`, with `last` in place of those that the last layer computes."""
        return last

    def select(self, last: Tensor) -> Tensor:
        """The selected tokens [K, D] of the last layer's output; all of it if no tokens are selected."""
        return last if self.selected_K is None else last.flatten(0, 1)[self.selected_K]


class EncoderLayer(nn.Module):
    """A layer: attention, then feed-forward, each as LayerNorm(x + Dropout(sublayer(x))).

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

    @replaceable
    def forward(
        self, hidden_BTD: Tensor, rows: Rows, *shared: Tensor, queries_BTD: Tensor | None = None
    ) -> Tensor:
        """Run the layer on `rows`: [B, T, D] -> [B, T, D]. `shared` comes from `Encoder.shared`;
        `queries_BTD` replaces the hidden states as the queries' input and in the sum after attention."""
        attended_BTD = self.attention(
            self.before_attention(hidden_BTD), rows.mask_B11T, *shared, queries_BTD=queries_BTD
        )
        return self.combine(hidden_BTD if queries_BTD is None else queries_BTD, attended_BTD)

    def before_attention(self, hidden_BTD: Tensor) -> Tensor:
        """The input of attention; each token is computed by itself."""
        return hidden_BTD

    def combine(self, hidden_BTD: Tensor, attended_BTD: Tensor) -> Tensor:
        """The output of the layer after attention; each token is computed by itself."""
        dtype = hidden_BTD.dtype  # under CUDA's autocast a norm returns fp32
        hidden_BTD = self.attention_norm(hidden_BTD + self.attention_dropout(attended_BTD)).to(dtype)
        return self.feed_forward_norm(hidden_BTD + self.dropout(self.feed_forward(hidden_BTD))).to(dtype)
