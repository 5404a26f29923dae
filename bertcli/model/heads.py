"""The heads of pretraining: a vector of a row, the words of masked tokens, the label of a pair."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.nn.parameter import Parameter

from bertcli.model.architecture import Architecture


class Pooler(nn.Module):
    """tanh(W h + b) of the first token (Devlin et al. 2019, section 3; in the original code only)."""

    def __init__(self, architecture: Architecture) -> None:
        super().__init__()
        self.dense = nn.Linear(architecture.hidden, architecture.hidden)

    def forward(self, first_BD: Tensor) -> Tensor:
        """The first token's hidden states -> pooled_BD."""
        return torch.tanh(self.dense(first_BD))


class MlmHead(nn.Module):
    """Masked language model: dense, GELU, LayerNorm, then the word embeddings as decoder, and a bias.

    Devlin et al. 2019, section 3.1 (task 1); the transform before the decoder is in the original code only.
    """

    def __init__(self, architecture: Architecture) -> None:
        super().__init__()
        self.dense = nn.Linear(architecture.hidden, architecture.hidden)
        self.norm = nn.LayerNorm(architecture.hidden, eps=architecture.layer_norm_eps)
        self.bias = Parameter(torch.zeros(architecture.vocab_size))

    def forward(self, hidden_MD: Tensor, word_embeddings_VD: Tensor) -> Tensor:
        """[M, D] and the embeddings' own weight (the tied decoder) -> logits_MV."""
        transformed_MD = self.norm(F.gelu(self.dense(hidden_MD)))
        return F.linear(transformed_MD, word_embeddings_VD, self.bias)


class PairHead(nn.Module):
    """Two logits of a pair of texts. Next sentence prediction (Devlin et al. 2019, section 3.1, task 2):
    label 0 is IsNext, 1 NotNext."""

    def __init__(self, architecture: Architecture) -> None:
        super().__init__()
        self.dense = nn.Linear(architecture.hidden, 2)

    def forward(self, pooled_BD: Tensor) -> Tensor:
        """[B, D] -> logits_B2."""
        return self.dense(pooled_BD)
