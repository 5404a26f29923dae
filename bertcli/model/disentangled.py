"""Disentangled attention (He et al. 2021, section 3.1): scores from contents and relative positions.

E is the axis of distances i - j from token j to token i, from 1 - T to T - 1.
"""

import math
from typing import ClassVar

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from bertcli.model.architecture import Architecture, Relative
from bertcli.model.layer import Attention, Dropout, Heads
from bertcli.model.seam import replaceable


def disentangled_probabilities(
    query_BNTH: Tensor,
    key_BNTH: Tensor,
    position_key_NEH: Tensor | None,
    position_query_NEH: Tensor | None,
    mask_B11T: Tensor | None,
) -> Tensor:
    """The weights softmax((Qc Kc^T + Qc Kr^T + Kc Qr^T) / sqrt(terms H)), equation 4: [B, N, T, T].

    Kr and Qr are taken at the distance i - j; a term whose positions are None is absent. The paper writes
    j - i for Qr, but its code and all released models have i - j. `mask_B11T` is that of
    `layer.attention_probabilities`.
    """
    length = query_BNTH.shape[-2]
    tokens_T = torch.arange(length, device=query_BNTH.device)
    distances_TT = (length - 1 + tokens_T[:, None] - tokens_T).expand(*query_BNTH.shape[:2], -1, -1)
    scores_BNTT, terms = query_BNTH @ key_BNTH.mT, 1
    if position_key_NEH is not None:
        scores_BNTT = scores_BNTT + (query_BNTH @ position_key_NEH.mT).gather(-1, distances_TT)
        terms += 1
    if position_query_NEH is not None:
        scores_BNTT = scores_BNTT + (key_BNTH @ position_query_NEH.mT).gather(-1, distances_TT.mT).mT
        terms += 1
    scores_BNTT = scores_BNTT / math.sqrt(terms * query_BNTH.shape[-1])
    if mask_B11T is not None:
        scores_BNTT = scores_BNTT.masked_fill(~mask_B11T, float("-inf"))
    return scores_BNTT.softmax(dim=-1)


@replaceable
def attend(
    query_BNTH: Tensor,
    key_BNTH: Tensor,
    value_BNTH: Tensor,
    position_key_NEH: Tensor | None,
    position_query_NEH: Tensor | None,
    mask_B11T: Tensor | None,
    dropout: float,
) -> Tensor:
    """The mean of the values, weighted by `disentangled_probabilities` with dropout: [B, N, T, H]."""
    probabilities_BNTT = disentangled_probabilities(
        query_BNTH, key_BNTH, position_key_NEH, position_query_NEH=position_query_NEH, mask_B11T=mask_B11T
    )
    return F.dropout(probabilities_BNTT, dropout) @ value_BNTH


def distance_rows(relative: Relative, length: int) -> Tensor:
    """The row of the table for each distance: int64 [E].

    Buckets hold single distances up to half their number, and logarithmic ranges beyond. The formula is that
    of the released models' code (microsoft/DeBERTa, `da_utils.py`) to the bit, in fp32; a distance at the
    border of two buckets could otherwise get another row.
    """
    rows_E = torch.arange(1 - length, length, device="cpu")
    if relative.buckets is not None:
        exact, farthest = relative.buckets // 2, relative.max_distance
        far_E = rows_E.abs().clamp(min=exact)
        share_E = torch.log(far_E / exact) / torch.log(torch.tensor((farthest - 1) / exact, device="cpu"))
        beyond_E = (torch.ceil(share_E * (exact - 1)) + exact) * rows_E.sign()
        rows_E = torch.where(rows_E.abs() <= exact, rows_E, beyond_E.long())
    return (rows_E + relative.span).clamp(0, 2 * relative.span - 1)


class RelativeTable(nn.Module):
    """The embeddings of relative positions, which all layers read."""

    def __init__(self, architecture: Architecture, relative: Relative) -> None:
        super().__init__()
        self.table = nn.Embedding(2 * relative.span, architecture.hidden)
        eps = architecture.layer_norm_eps
        self.norm = nn.LayerNorm(architecture.hidden, eps=eps) if relative.normalized_table else nn.Identity()

    def forward(self) -> Tensor:
        """The table [P, D], with P = 2 `relative.span`."""
        return self.norm(self.table.weight)


class DisentangledAttention(Attention):
    """Disentangled attention with its output projection; `shared` holds the output of `RelativeTable`."""

    any_queries: ClassVar[bool] = False

    def __init__(self, architecture: Architecture, relative: Relative) -> None:
        super().__init__(architecture)
        hidden, self.relative = architecture.hidden, relative
        self.key = nn.Linear(hidden, hidden, bias=relative.key_bias)
        if not relative.shared_projections:
            if relative.content_to_position:
                self.position_key = nn.Linear(hidden, hidden, bias=relative.key_bias)
            if relative.position_to_content:
                self.position_query = nn.Linear(hidden, hidden)
        self.position_dropout = Dropout(architecture.dropout)
        # Computed here, not in `forward`: another library's logarithm may differ in the last bit.
        self.distance_rows = distance_rows(relative, architecture.usable_positions)
        # Short rows need the middle of the table alone, if no distance has a row farther from it than itself.
        farthest = len(self.distance_rows) // 2
        distances_E = torch.arange(-farthest, farthest + 1, device="cpu")
        self.narrows = bool(((self.distance_rows - relative.span).abs() <= distances_E.abs()).all())

    def attend(self, heads: Heads, mask_B11T: Tensor | None, *shared: Tensor) -> Tensor:
        positions = self.positions(shared[0], heads.query_BNWH.shape[-2])
        return attend(*heads, *positions, mask_B11T=mask_B11T, dropout=self.dropout_now)

    def probabilities(self, hidden_BTD: Tensor, mask_B11T: Tensor | None, *shared: Tensor) -> Tensor:
        query_BNTH, key_BNTH = (self.split_heads(layer(hidden_BTD)) for layer in (self.query, self.key))
        positions = self.positions(shared[0], query_BNTH.shape[-2])
        return disentangled_probabilities(query_BNTH, key_BNTH, *positions, mask_B11T=mask_B11T)

    def positions(self, table_PD: Tensor, length: int) -> tuple[Tensor | None, Tensor | None]:
        """Kr and Qr of every distance in rows of this length: [N, E, H]; None if the term is absent."""
        span, shared = self.relative.span, self.relative.shared_projections
        reach = torch.sym_min(span, length) if self.narrows else span
        near_1PD = self.position_dropout(table_PD[span - reach : span + reach])[None]
        middle = len(self.distance_rows) // 2
        rows_E = self.distance_rows[middle + 1 - length : middle + length]
        rows_E = (rows_E - span + reach).to(table_PD.device)

        def read(layer: nn.Linear) -> Tensor:
            return self.split_heads(layer(near_1PD))[0].index_select(1, rows_E)

        key_NEH = query_NEH = None
        if self.relative.content_to_position:
            key_NEH = read(self.key if shared else self.position_key)
        if self.relative.position_to_content:
            query_NEH = read(self.query if shared else self.position_query)
        return key_NEH, query_NEH
