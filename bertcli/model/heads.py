"""The heads of pretraining: a vector of a row, the words of masked tokens, the label of a pair."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.nn.parameter import Parameter

from bertcli.families.family import Head
from bertcli.families.registry import FAMILIES
from bertcli.model.architecture import Architecture
from bertcli.model.layer import ACTIVATIONS, Dropout, layer_norm


class Pooler(nn.Module):
    """What a head reads of a token: [dropout,] dense, activation [, LayerNorm].

    BERT's is tanh(W h + b) of the first token (Devlin et al. 2019, section 3; in the original code only).
    """

    def __init__(self, architecture: Architecture, head: Head = Head("")) -> None:
        super().__init__()
        rate = getattr(architecture, head.dense_dropout) if head.dense_dropout else 0.0
        self.dropout = Dropout(rate)
        self.dense = nn.Linear(architecture.hidden, architecture.hidden, bias=architecture.biases)
        self.activation = ACTIVATIONS[head.activation]
        self.norm = layer_norm(architecture) if head.norm else None

    def forward(self, hidden_BD: Tensor) -> Tensor:
        """[..., D] -> [..., D]."""
        pooled_BD = self.activation(self.dense(self.dropout(hidden_BD)))
        return pooled_BD if self.norm is None else self.norm(pooled_BD)


class MlmHead(nn.Module):
    """Masked language model: dense, GELU, LayerNorm, then the word embeddings as decoder, and a bias.

    Devlin et al. 2019, section 3.1 (task 1); the transform before the decoder is in the original code only.
    Its width is that of the embeddings.
    """

    def __init__(self, architecture: Architecture) -> None:
        super().__init__()
        width = architecture.embedding or architecture.hidden
        self.dense = nn.Linear(architecture.hidden, width, bias=architecture.biases)
        self.activation = ACTIVATIONS[architecture.activation]
        self.norm = layer_norm(architecture, width)
        self.bias = Parameter(torch.zeros(architecture.vocab_size))

    def forward(self, hidden_MD: Tensor, word_embeddings_VE: Tensor) -> Tensor:
        """[M, D] and the embeddings' own weight (the tied decoder) -> logits_MV."""
        transformed_ME = self.norm(self.activation(self.dense(hidden_MD)))
        return F.linear(transformed_ME, word_embeddings_VE, self.bias)


class RtdHead(nn.Module):
    """Replaced token detection (Clark et al. 2020, section 2): a logit a token, high if it was replaced.

    Dense, GELU, dense. DeBERTa-v3 reads LayerNorm(token + first token of its row), by its original code.
    """

    def __init__(self, architecture: Architecture) -> None:
        super().__init__()
        reads_row = "rtd_head.norm" in FAMILIES[architecture.family].tensors
        self.norm = layer_norm(architecture) if reads_row else None
        self.dense = nn.Linear(architecture.hidden, architecture.hidden)
        self.output = nn.Linear(architecture.hidden, 1)

    def forward(self, hidden_KD: Tensor, first_KD: Tensor) -> Tensor:
        """[..., D] of tokens, and of the first token in the row of each -> logits [...]."""
        if self.norm is not None:
            hidden_KD = self.norm(hidden_KD + first_KD)
        return self.output(F.gelu(self.dense(hidden_KD))).squeeze(-1)


class PairHead(nn.Module):
    """Two logits of a pair of texts. Next sentence prediction (Devlin et al. 2019, section 3.1, task 2):
    label 0 is IsNext, 1 NotNext."""

    def __init__(self, architecture: Architecture) -> None:
        super().__init__()
        self.dense = nn.Linear(architecture.hidden, 2)

    def forward(self, pooled_BD: Tensor) -> Tensor:
        """[B, D] -> logits_B2."""
        return self.dense(pooled_BD)
