"""The two pretraining heads: hidden states -> words, pooled rows -> is B the next sentence?"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.nn.parameter import Parameter

from bertcli.model.architecture import Architecture
from bertcli.model.linear import linear

_GPU_MULTIPLE = 64


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
        """[M, D] and the embeddings' own weight (the tied decoder) -> logits_MV.

        In training on a GPU, V is `pad_vocabulary`'s.
        """
        transformed_MD = self.norm(F.gelu(linear(hidden_MD, self.dense.weight, self.dense.bias)))
        transformed_MD = transformed_MD.to(hidden_MD.dtype)  # fp32 under CUDA's autocast
        weight_VD, bias_V = word_embeddings_VD, self.bias
        if self.training and hidden_MD.device.type == "cuda":
            weight_VD, bias_V = pad_vocabulary(weight_VD, bias_V)
        return linear(transformed_MD, weight_VD, bias_V)


def pad_vocabulary(weight_VD: Tensor, bias_V: Tensor) -> tuple[Tensor, Tensor]:
    """A decoder with words that never come, logit -inf, up to a multiple of 64: a GPU's matrix products are
    much slower at other sizes. Made anew for each pass: no part of the model, nor of what is saved."""
    missing = -len(weight_VD) % _GPU_MULTIPLE
    return F.pad(weight_VD, (0, 0, 0, missing)), F.pad(bias_V, (0, missing), value=float("-inf"))


class NspHead(nn.Module):
    """Next sentence prediction (Devlin et al. 2019, section 3.1, task 2). Label 0: IsNext, 1: NotNext."""

    def __init__(self, architecture: Architecture) -> None:
        super().__init__()
        self.dense = nn.Linear(architecture.hidden, 2)

    def forward(self, pooled_BD: Tensor) -> Tensor:
        """[B, D] -> logits_B2."""
        return self.dense(pooled_BD)
