"""Multi-head self-attention: every token gathers from every real token of its row."""

from __future__ import annotations

import math

import torch.nn.functional as F
from torch import Tensor, nn

from bertcli.model.architecture import Architecture
from bertcli.model.packing import Packing


def attend_reference(
    query_BNTH: Tensor, key_BNTH: Tensor, value_BNTH: Tensor, mask_B11T: Tensor | None, dropout: float
) -> tuple[Tensor, Tensor]:
    """softmax(Q K^T / sqrt(H)) V, equation 1 of Vaswani et al. 2017, written out.

    `mask_B11T` (bool): True at tokens that may be looked at; None: all may. `dropout` falls on the
    probabilities, as in BERT. Returns context_BNTH and the probabilities_BNTT before dropout.
    """
    scores_BNTT = query_BNTH @ key_BNTH.transpose(-1, -2) / math.sqrt(query_BNTH.shape[-1])
    if mask_B11T is not None:
        scores_BNTT = scores_BNTT.masked_fill(~mask_B11T, float("-inf"))
    probabilities_BNTT = scores_BNTT.softmax(dim=-1)
    return F.dropout(probabilities_BNTT, dropout) @ value_BNTH, probabilities_BNTT


def attend(
    query_BNTH: Tensor, key_BNTH: Tensor, value_BNTH: Tensor, mask_B11T: Tensor | None, dropout: float
) -> Tensor:
    """The context_BNTH of `attend_reference` by torch's fused kernels, which keep no [T, T] matrix."""
    return F.scaled_dot_product_attention(
        query_BNTH, key_BNTH, value_BNTH, attn_mask=mask_B11T, dropout_p=dropout
    )


class Attention(nn.Module):
    """Multi-head self-attention (Vaswani et al. 2017, section 3.2.2) with its output projection."""

    def __init__(self, architecture: Architecture) -> None:
        super().__init__()
        self.head_size = architecture.head_size
        self.dropout = architecture.attention_dropout
        self.query = nn.Linear(architecture.hidden, architecture.hidden)
        self.key = nn.Linear(architecture.hidden, architecture.hidden)
        self.value = nn.Linear(architecture.hidden, architecture.hidden)
        self.output = nn.Linear(architecture.hidden, architecture.hidden)

    def forward(self, hidden_RD: Tensor, packing: Packing) -> Tensor:
        """[R, D] -> [R, D]."""
        context_BNTH = attend(*self._project(hidden_RD, packing), packing.mask_B11T, self._dropout_now())
        return self._merge(context_BNTH, packing)

    def trace(self, hidden_RD: Tensor, packing: Packing) -> tuple[Tensor, Tensor]:
        """As `forward`, by the reference, with the probabilities_BNTT beside the result."""
        context_BNTH, probabilities_BNTT = attend_reference(
            *self._project(hidden_RD, packing), packing.mask_B11T, self._dropout_now()
        )
        return self._merge(context_BNTH, packing), probabilities_BNTT

    def _project(self, hidden_RD: Tensor, packing: Packing) -> tuple[Tensor, Tensor, Tensor]:
        return (
            self._split(packing.unpack(self.query(hidden_RD))),
            self._split(packing.unpack(self.key(hidden_RD))),
            self._split(packing.unpack(self.value(hidden_RD))),
        )

    def _split(self, hidden_BTD: Tensor) -> Tensor:
        hidden_BTNH = hidden_BTD.unflatten(-1, (-1, self.head_size))
        return hidden_BTNH.transpose(1, 2)

    def _merge(self, context_BNTH: Tensor, packing: Packing) -> Tensor:
        return self.output(packing.pack(context_BNTH.transpose(1, 2).flatten(-2)))

    def _dropout_now(self) -> float:
        return self.dropout if self.training else 0.0
