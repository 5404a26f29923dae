"""Multi-head self-attention: every token attends to every real token of its row."""

from __future__ import annotations

import math
from typing import ClassVar

import torch.nn.functional as F
from torch import Tensor, nn

from bertcli.model.architecture import Architecture
from bertcli.model.fast import attention as fast
from bertcli.model.fast.switch import is_on, replaced_by


def attention_probabilities(query_BNTH: Tensor, key_BNTH: Tensor, mask_B11T: Tensor | None) -> Tensor:
    """softmax(Q K^T / sqrt(H)): [B, N, T, T], the attention of each token (row) to each token (column).

    `mask_B11T` (bool): True at real tokens; None: no padding.
    """
    scores_BNTT = query_BNTH @ key_BNTH.mT / math.sqrt(query_BNTH.shape[-1])
    if mask_B11T is not None:
        scores_BNTT = scores_BNTT.masked_fill(~mask_B11T, float("-inf"))
    return scores_BNTT.softmax(dim=-1)


@replaced_by(fast.attend, when=lambda *_, **named: is_on("attention"))
def attend(
    query_BNTH: Tensor, key_BNTH: Tensor, value_BNTH: Tensor, mask_B11T: Tensor | None, dropout: float
) -> Tensor:
    """softmax(Q K^T / sqrt(H)) V, equation 1 of Vaswani et al. 2017: [B, N, T, H].

    `dropout` is applied to the probabilities, as in BERT.
    """
    return F.dropout(attention_probabilities(query_BNTH, key_BNTH, mask_B11T), dropout) @ value_BNTH


class Attention(nn.Module):
    """Multi-head self-attention (Vaswani et al. 2017, section 3.2.2) with its output projection."""

    any_queries: ClassVar[bool] = True
    """Whether `attend` may get the queries of some tokens alone: the result does not depend on their places.
    """

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
        """[B, T, D] -> [B, T, D]; `shared`: what `Encoder.shared` gives; `queries_BTD`: None: the tokens."""
        query_BNTH = self.split_heads(self.query(hidden_BTD if queries_BTD is None else queries_BTD))
        key_BNTH, value_BNTH = (self.split_heads(layer(hidden_BTD)) for layer in (self.key, self.value))
        context_BNTH = self.attend(query_BNTH, key_BNTH, value_BNTH, *shared, mask_B11T=mask_B11T)
        return self.output(self.join_heads(context_BNTH))

    def attend(
        self,
        query_BNWH: Tensor,
        key_BNTH: Tensor,
        value_BNTH: Tensor,
        *shared: Tensor,
        mask_B11T: Tensor | None,
    ) -> Tensor:
        """-> context [B, N, W, H]; the other kinds of attention have a function of their own here."""
        return attend(query_BNWH, key_BNTH, value_BNTH, mask_B11T=mask_B11T, dropout=self.dropout_now)

    def probabilities(self, hidden_BTD: Tensor, mask_B11T: Tensor | None, *shared: Tensor) -> Tensor:
        """[B, T, D] -> probabilities_BNTT, the weights of the values in `forward`, before dropout."""
        query_BNTH, key_BNTH = (self.split_heads(layer(hidden_BTD)) for layer in (self.query, self.key))
        return attention_probabilities(query_BNTH, key_BNTH, mask_B11T)

    @property
    def dropout_now(self) -> float:
        return self.dropout if self.training else 0.0

    def split_heads(self, projected_BTD: Tensor) -> Tensor:
        """-> [B, N, T, H]."""
        return projected_BTD.unflatten(-1, (-1, self.head_size)).transpose(1, 2)

    def join_heads(self, context_BNTH: Tensor) -> Tensor:
        """-> [B, T, D]."""
        return context_BNTH.transpose(1, 2).flatten(-2)
