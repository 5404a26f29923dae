"""Replaced token detection: a generator replaces words, and the model finds them (Clark et al. 2020)."""

from __future__ import annotations

from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.nn.parameter import Parameter

from bertcli.families.fresh import Sharing
from bertcli.model.architecture import Architecture
from bertcli.model.encoder import Body
from bertcli.model.fast.packing import real_places, take, take_distinct
from bertcli.model.heads import RtdHead
from bertcli.model.init import initialize
from bertcli.model.pretraining import PretrainingModel

_CHUNK = 1 << 19
"""Probabilities that are summed at once: they stay in the cache."""


class RtdOutput(NamedTuple):
    """
    Attributes:
        mlm_logits_MV: of the generator, at the masked tokens.
        sampled_N: int64, the words with which it replaced the first N of them.
        rtd_logits_K: of the discriminator, at the real tokens: high if a token was replaced.
        real_K: int64, their flat positions b * T + t.
    """

    mlm_logits_MV: Tensor
    sampled_N: Tensor
    rtd_logits_K: Tensor
    real_K: Tensor


class ReplacedTokenModel(nn.Module):
    """The discriminator, which is the model, with its generator; freshly initialized.

    `sharing`: `families.fresh.Generator`. Raises `ValueError` if `architecture` has no generator.
    """

    def __init__(self, architecture: Architecture, sharing: Sharing) -> None:
        super().__init__()
        if architecture.generator is None:
            raise ValueError("the sizes of the generator are missing")
        self.architecture = architecture
        self.body = Body(architecture)
        self.rtd_head = RtdHead(architecture)
        initialize(self, architecture.init_std)
        self.generator = PretrainingModel(architecture.generator, pair_head=False)
        own, theirs = self.body.embeddings, self.generator.body.embeddings
        if sharing == "tied":
            theirs.word, theirs.position, theirs.segment = own.word, own.position, own.segment
            theirs.norm = own.norm
        else:
            own.word = DisentangledEmbedding(theirs.word)  # pyright: ignore[reportAttributeAccessIssue]
            if theirs.position is not None:
                disentangled = DisentangledEmbedding(theirs.position)
                own.position = disentangled  # pyright: ignore[reportAttributeAccessIssue]

    def forward(
        self,
        ids_BT: Tensor,
        segments_BT: Tensor,
        mask_BT: Tensor | None,
        masked_M: Tensor,
        draws_N: Tensor,
    ) -> RtdOutput:
        """Masked rows -> the generator's words, and the discriminator's opinion of the rows with them.

        Args:
            masked_M: as in `PretrainingModel`; only its first N places are replaced.
            draws_N: float64 in [0, 1), a uniform draw for each.
        """
        logits_MV = self.generator(ids_BT, segments_BT, mask_BT, masked_M).mlm_logits_MV
        sampled_N = sample(logits_MV[: len(draws_N)].detach(), draws_N)
        replaced_BT = ids_BT.flatten().scatter(0, masked_M[: len(draws_N)], sampled_N).view_as(ids_BT)
        hidden_BTD = self.body(replaced_BT, segments_BT, mask_BT)
        real_BT = torch.ones(ids_BT.shape, dtype=torch.bool) if mask_BT is None else mask_BT
        places_R = real_places(real_BT).to(ids_BT.device)  # few sizes, as for all other tensors of a batch
        hidden_RD = take_distinct(hidden_BTD.flatten(0, 1), places_R)
        first_RD = take(hidden_BTD[:, 0], places_R // ids_BT.shape[1])
        logits_R, num_real = self.rtd_head(hidden_RD, first_RD), int(real_BT.sum())
        return RtdOutput(logits_MV, sampled_N, logits_R[:num_real], real_K=places_R[:num_real])


class DisentangledEmbedding(nn.Module):
    """The generator's table, without its gradient, plus a difference that starts at zero (He et al. 2023,
    section 3.2)."""

    def __init__(self, table: nn.Embedding) -> None:
        super().__init__()
        self.difference = Parameter(torch.zeros_like(table.weight))
        self._table = [table]  # not a submodule: its parameters are the generator's

    @property
    def weight(self) -> Tensor:
        """[V, E], the sum."""
        return self._table[0].weight.detach() + self.difference

    def forward(self, ids: Tensor) -> Tensor:
        """[...] -> [..., E]."""
        return F.embedding(ids, self._table[0].weight.detach()) + F.embedding(ids, self.difference)


def sample(logits_NV: Tensor, draws_N: Tensor) -> Tensor:
    """int64 [N]: a word for each row of logits, drawn by its probability with a uniform draw."""
    words_N = torch.empty(len(logits_NV), dtype=torch.int64, device=logits_NV.device)
    rows = max(1, _CHUNK // logits_NV.shape[1])
    for start in range(0, len(logits_NV), rows):
        chunk = slice(start, start + rows)
        sums = logits_NV[chunk].softmax(-1, dtype=torch.float32).cumsum(-1)
        draws = (draws_N[chunk, None] * sums[:, -1:]).to(sums.dtype)
        words_N[chunk] = torch.searchsorted(sums, draws, right=True).squeeze(1)
    return words_N.clamp_(max=logits_NV.shape[1] - 1)
