"""Multi-head self-attention: every token gathers from every real token of its row."""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from bertcli.model.architecture import Architecture
from bertcli.model.attention_written_out import attend_for_some, attend_in_groups
from bertcli.model.linear import linear
from bertcli.model.packing import Packing, Wanted, take

_LARGEST_PACKED_HEAD = 256


def attend_reference(heads_3BNTH: Tensor, mask_B11T: Tensor | None, dropout: float) -> tuple[Tensor, Tensor]:
    """softmax(Q K^T / sqrt(H)) V of queries, keys, values; equation 1 of Vaswani et al. 2017, written out.

    `mask_B11T` (bool): True at tokens that may be looked at; None: all may. `dropout` falls on the
    probabilities, as in BERT. Returns context_BNTH and the probabilities_BNTT before dropout.
    """
    query_BNTH, key_BNTH, value_BNTH = heads_3BNTH
    scores_BNTT = query_BNTH @ key_BNTH.transpose(-1, -2) / math.sqrt(query_BNTH.shape[-1])
    if mask_B11T is not None:
        scores_BNTT = scores_BNTT.masked_fill(~mask_B11T, float("-inf"))
    probabilities_BNTT = scores_BNTT.softmax(dim=-1)
    return F.dropout(probabilities_BNTT, dropout) @ value_BNTH, probabilities_BNTT


def attend(heads_3BNTH: Tensor, mask_B11T: Tensor | None, dropout: float) -> Tensor:
    """The context_BNTH of `attend_reference` by torch's own kernels."""
    query_BNTH, key_BNTH, value_BNTH = heads_3BNTH
    return F.scaled_dot_product_attention(
        query_BNTH, key_BNTH, value_BNTH, attn_mask=mask_B11T, dropout_p=dropout
    )


def attend_packed(heads_3RNH: Tensor, starts_S: Tensor, longest: int, dropout: float) -> Tensor:
    """As `attend`, of rows that stand one after the other without padding (Dao et al. 2022).

    Args:
        starts_S: int32, where each row starts, then R.
        longest: tokens of the longest row, or more.

    Returns:
        context_RNH.
    """
    query_RNH, key_RNH, value_RNH = heads_3RNH
    return torch.ops.aten._flash_attention_forward(
        query_RNH, key_RNH, value_RNH, starts_S, starts_S, longest, longest, dropout, False, False
    )[0]


def reads_packed(hidden: Tensor, head_size: int) -> bool:
    """Whether `attend_packed` can compute it: torch has the kernel for 16 bits on GPUs from Ampere on."""
    return (
        hidden.device.type == "cuda"
        and hidden.dtype in (torch.bfloat16, torch.float16)
        and head_size % 8 == 0
        and head_size <= _LARGEST_PACKED_HEAD
        and torch.cuda.get_device_capability(hidden.device) >= (8, 0)
        and torch.backends.cuda.is_flash_attention_available()
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
        return self._project_back(self._context(hidden_RD, packing))

    def forward_some(self, hidden_RD: Tensor, packing: Packing, asking_KD: Tensor, wanted: Wanted) -> Tensor:
        """As `forward` for the wanted tokens alone, whose own hidden states are `asking_KD`: [K, D]."""
        if wanted.queries is None or wanted.keys is None or torch.compiler.is_compiling():
            return self._project_back(take(self._context(hidden_RD, packing), wanted.numbers_K))
        query_KD = linear(asking_KD, self.query.weight, self.query.bias)
        projected_RE = _project(hidden_RD, self.key, self.value)
        mask_B11T, dropout = packing.mask_B11T, self._dropout_now()
        return self._project_back(
            attend_for_some(query_KD, wanted.queries, projected_RE, wanted.keys, mask_B11T, dropout)
        )

    def trace(self, hidden_RD: Tensor, packing: Packing) -> tuple[Tensor, Tensor]:
        """As `forward`, by the reference, with the probabilities_BNTT beside the result."""
        heads_3BNTH = self._heads(self._project_all(hidden_RD), packing)
        context_BNTH, probabilities_BNTT = attend_reference(
            heads_3BNTH, packing.mask_B11T, self._dropout_now()
        )
        return self._project_back(self._join(context_BNTH, packing)), probabilities_BNTT

    def _context(self, hidden_RD: Tensor, packing: Packing) -> Tensor:
        """-> context_RD, in the fastest way there is."""
        projected_RE, dropout = self._project_all(hidden_RD), self._dropout_now()
        if packing.groups is not None and not torch.compiler.is_compiling():
            return attend_in_groups(projected_RE, packing.groups, dropout)
        if packing.starts_S is not None:
            heads_3RNH = projected_RE.unflatten(-1, (3, -1, self.head_size)).movedim(1, 0)
            return attend_packed(heads_3RNH, packing.starts_S, packing.shape[1], dropout).flatten(1)
        context_BNTH = attend(self._heads(projected_RE, packing), packing.mask_B11T, dropout)
        return self._join(context_BNTH, packing)

    def _project_all(self, hidden_RD: Tensor) -> Tensor:
        """Queries, keys and values side by side, projected_RE."""
        return _project(hidden_RD, self.query, self.key, self.value)

    def _project_back(self, context_RD: Tensor) -> Tensor:
        return linear(context_RD, self.output.weight, self.output.bias)

    def _heads(self, projected_RE: Tensor, packing: Packing) -> Tensor:
        """[R, E] -> heads_3BNTH, padded."""
        projected_BTE = packing.unpack(projected_RE)
        return projected_BTE.unflatten(-1, (3, -1, self.head_size)).permute(2, 0, 3, 1, 4)

    def _join(self, context_BNTH: Tensor, packing: Packing) -> Tensor:
        """-> context_RD, without padding."""
        return packing.pack(context_BNTH.transpose(1, 2).flatten(-2))

    def _dropout_now(self) -> float:
        return self.dropout if self.training else 0.0


def _project(hidden_RD: Tensor, *projections: nn.Linear) -> Tensor:
    """Side by side, by one product."""
    weight_ED = torch.cat([projection.weight for projection in projections])
    bias_E = torch.cat([projection.bias for projection in projections])
    return linear(hidden_RD, weight_ED, bias_E)
