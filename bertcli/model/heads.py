"""The heads of pretraining: the vector of a row, masked words, replaced tokens, the label of a pair."""

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.nn.parameter import Parameter

from bertcli.families.family import Head
from bertcli.families.registry import FAMILIES
from bertcli.model.architecture import Architecture
from bertcli.model.layer import ACTIVATIONS, Dropout, layer_norm


class Pooler(nn.Module):
    """The layers between a token's hidden state and a head: [dropout,] dense, activation [, LayerNorm].

    BERT's pooler is tanh(W h + b) of the first token (Devlin et al. 2019, section 3; in the original code
    only).
    """

    def __init__(self, architecture: Architecture, head: Head = Head("")) -> None:
        super().__init__()
        self.dropout = Dropout(getattr(architecture, head.dense_dropout) if head.dense_dropout else 0.0)
        self.dense = nn.Linear(architecture.hidden, architecture.hidden, bias=architecture.biases)
        self.activation = ACTIVATIONS[head.activation]
        self.norm = layer_norm(architecture) if head.norm else None

    def forward(self, hidden_BD: Tensor) -> Tensor:
        """Pool hidden states [..., D] -> [..., D]."""
        pooled_BD = self.activation(self.dense(self.dropout(hidden_BD)))
        return pooled_BD if self.norm is None else self.norm(pooled_BD)


class MlmHead(nn.Module):
    """The MLM head (Devlin et al. 2019, section 3.1, task 1): dense, GELU, LayerNorm, the decoder, a bias.

    The decoder is the table of word embeddings. The transform before it is in the original code only; its
    width is that of the embeddings.
    """

    def __init__(self, architecture: Architecture) -> None:
        super().__init__()
        width = architecture.embedding or architecture.hidden
        self.dense = nn.Linear(architecture.hidden, width, bias=architecture.biases)
        self.activation = ACTIVATIONS[architecture.activation]
        self.norm = layer_norm(architecture, width)
        self.bias = Parameter(torch.zeros(architecture.vocab_size))

    def forward(self, hidden_MD: Tensor, word_embeddings_VE: Tensor) -> Tensor:
        """The logits_MV of hidden_MD; `word_embeddings_VE` is the embeddings' weight (the tied decoder)."""
        transformed_ME = self.norm(self.activation(self.dense(hidden_MD)))
        return F.linear(transformed_ME, word_embeddings_VE, self.bias)


class RtdHead(nn.Module):
    """Replaced token detection (Clark et al. 2020, section 2): one logit per token, high if it was replaced.

    The layers are dense, GELU, dense. In DeBERTa-v3 the input is LayerNorm(token + first token of its row),
    as in its original code.
    """

    def __init__(self, architecture: Architecture) -> None:
        super().__init__()
        reads_row = "rtd_head.norm" in FAMILIES[architecture.family].tensors
        self.norm = layer_norm(architecture) if reads_row else None
        self.dense = nn.Linear(architecture.hidden, architecture.hidden)
        self.output = nn.Linear(architecture.hidden, 1)

    def forward(self, hidden_KD: Tensor, first_KD: Tensor) -> Tensor:
        """The logits [...] of tokens [..., D]; `first_KD` [..., D] has the first token in the row of each."""
        if self.norm is not None:
            hidden_KD = self.norm(hidden_KD + first_KD)
        return self.output(F.gelu(self.dense(hidden_KD))).squeeze(-1)


class PairHead(nn.Module):
    """Two logits per pair of texts. In next sentence prediction (Devlin et al. 2019, section 3.1, task 2),
    label 0 is IsNext and 1 is NotNext."""

    def __init__(self, architecture: Architecture) -> None:
        super().__init__()
        self.dense = nn.Linear(architecture.hidden, 2)

    def forward(self, pooled_BD: Tensor) -> Tensor:
        """The logits_B2 of pooled rows [B, D]."""
        return self.dense(pooled_BD)
