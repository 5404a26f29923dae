"""The pretraining models: rows of ids -> the logits of their objectives."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.nn.parameter import Parameter

from bertcli.families.family import Sharing
from bertcli.model.architecture import Architecture
from bertcli.model.encoder import BodyModel, MaskDecoder, first_tokens
from bertcli.model.fast.packing import real_places, take, take_distinct
from bertcli.model.heads import MlmHead, PairHead, Pooler, RtdHead
from bertcli.model.init import initialize, initialize_outputs


class PretrainingOutput(NamedTuple):
    mlm_logits_MV: Tensor
    pair_logits_B2: Tensor | None
    """The logits of `heads.PairHead`; None in a model without this head."""
    hidden_BTD: Tensor | None = None
    """The hidden states of the last layer if they were requested."""


class PretrainingModel(BodyModel):
    """The body with its pretraining heads (Devlin et al. 2019, section 3.1), freshly initialized.

    A model with `pair_head=False` has neither the pair head nor its pooler.
    """

    def __init__(self, architecture: Architecture, pair_head: bool = True) -> None:
        super().__init__(architecture)
        self.pooler = Pooler(architecture) if pair_head else None
        self.mlm_head = MlmHead(architecture)
        self.pair_head = PairHead(architecture) if pair_head else None
        self.mask_decoder = MaskDecoder(architecture) if architecture.mask_decoder else None
        initialize(self, architecture.init_std)
        if architecture.pre_norm:
            initialize_outputs(self, architecture)

    @property
    def words(self) -> PretrainingModel:
        """The model that predicts words: itself."""
        return self

    def forward(
        self,
        ids_BT: Tensor,
        segments_BT: Tensor,
        mask_BT: Tensor | None = None,
        masked_M: Tensor | None = None,
        hidden: bool = False,
    ) -> PretrainingOutput:
        """The logits of the words at `masked_M` and of each row's pair; other arguments are those of `Body`.

        Only the tokens `masked_M` (int64, flat positions b * T + t of real tokens; None means all B * T) go
        through the MLM head, whose projection to the vocabulary costs more than the encoder of small models.
        Only they and the first tokens go through most of the last layer; with `hidden`, all tokens do.
        """
        hidden_BTD = None
        positions_TD = None if self.mask_decoder is None else self.mask_decoder(ids_BT.shape[1])
        if masked_M is None or hidden:
            hidden_BTD = self.body(ids_BT, segments_BT, mask_BT, positions_TD=positions_TD)
            hidden_MD, first_BD = hidden_BTD.flatten(0, 1), hidden_BTD[:, 0]
            hidden_MD = hidden_MD if masked_M is None else take(hidden_MD, masked_M)
        else:
            first_B = first_tokens(ids_BT) if self.pooler is not None else masked_M[:0]
            selected_K = torch.cat([first_B, masked_M])
            hidden_KD = self.body(
                ids_BT, segments_BT, mask_BT, selected_K=selected_K, positions_TD=positions_TD
            )
            first_BD, hidden_MD = hidden_KD.split([len(first_B), len(masked_M)])
        mlm_logits_MV = self.mlm_head(hidden_MD, self.body.embeddings.word.weight)
        if self.pooler is None or self.pair_head is None:
            return PretrainingOutput(mlm_logits_MV, None, hidden_BTD)
        return PretrainingOutput(mlm_logits_MV, self.pair_head(self.pooler(first_BD)), hidden_BTD)


_CHUNK = 1 << 19
"""The number of probabilities that are summed at once; so many stay in the cache."""


class RtdOutput(NamedTuple):
    """The outputs of `ReplacedTokenModel`.

    Attributes:
        mlm_logits_MV: the generator's logits at the masked tokens.
        sampled_N: int64, the words with which it replaced the first N masked tokens.
        rtd_logits_K: the discriminator's logits at the real tokens; high if a token was replaced.
        real_K: int64, the flat positions b * T + t of the real tokens.
    """

    mlm_logits_MV: Tensor
    sampled_N: Tensor
    rtd_logits_K: Tensor
    real_K: Tensor


class ReplacedTokenModel(BodyModel):
    """The discriminator, which is the actual model, with its generator; freshly initialized.

    `sharing` is explained at `families.family.Generator`. Raises `ValueError` if `architecture` has no
    generator.
    """

    def __init__(self, architecture: Architecture, sharing: Sharing) -> None:
        if architecture.generator is None:
            raise ValueError("the sizes of the generator are missing")
        super().__init__(architecture)
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

    @property
    def words(self) -> PretrainingModel:
        """The model that predicts words: the generator."""
        return self.generator

    def forward(
        self,
        ids_BT: Tensor,
        segments_BT: Tensor,
        mask_BT: Tensor | None,
        masked_M: Tensor,
        draws_N: Tensor,
    ) -> RtdOutput:
        """Fill masked rows with the generator's words -> the logits of generator and discriminator.

        Args:
            masked_M: the masked tokens, as in `PretrainingModel`; only the first N are replaced.
            draws_N: float64 in [0, 1), a uniform draw for each of these.
        """
        logits_MV = self.generator(ids_BT, segments_BT, mask_BT, masked_M).mlm_logits_MV
        sampled_N = sample(logits_MV[: len(draws_N)].detach(), draws_N)
        replaced_BT = ids_BT.flatten().scatter(0, masked_M[: len(draws_N)], sampled_N).view_as(ids_BT)
        hidden_BTD = self.body(replaced_BT, segments_BT, mask_BT)
        real_BT = torch.ones(ids_BT.shape, dtype=torch.bool) if mask_BT is None else mask_BT
        places_R = real_places(real_BT).to(ids_BT.device)  # a few sizes only, as for other tensors of a batch
        hidden_RD = take_distinct(hidden_BTD.flatten(0, 1), places_R)
        first_RD = take(hidden_BTD[:, 0], places_R // ids_BT.shape[1])
        logits_R, num_real = self.rtd_head(hidden_RD, first_RD), int(real_BT.sum())
        return RtdOutput(logits_MV, sampled_N, logits_R[:num_real], real_K=places_R[:num_real])


LanguageModel = PretrainingModel | ReplacedTokenModel
"""A model that learns from text alone."""


OF_GENERATOR = "generator."
"""The beginning of the names of the generator's weights in a `ReplacedTokenModel`."""


def generator_weights(weights: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """The weights of the generator alone, among those of a `ReplacedTokenModel`, by their names in it."""
    return {
        name.removeprefix(OF_GENERATOR): each
        for name, each in weights.items()
        if name.startswith(OF_GENERATOR)
    }


class DisentangledEmbedding(nn.Module):
    """The generator's table, without its gradient, plus a difference that starts at zero (He et al. 2023,
    section 3.2)."""

    def __init__(self, table: nn.Embedding) -> None:
        super().__init__()
        self.difference = Parameter(torch.zeros_like(table.weight))
        self._table = [table]  # not a submodule: its parameters are the generator's

    @property
    def weight(self) -> Tensor:
        """The sum of both tables: [V, E]."""
        return self._table[0].weight.detach() + self.difference

    def forward(self, ids: Tensor) -> Tensor:
        """Embed ids [...] -> [..., E]."""
        return F.embedding(ids, self._table[0].weight.detach()) + F.embedding(ids, self.difference)


def sample(logits_NV: Tensor, draws_N: Tensor) -> Tensor:
    """A word for each row of logits, drawn by its probability with a uniform draw: int64 [N]."""
    words_N = torch.empty(len(logits_NV), dtype=torch.int64, device=logits_NV.device)
    rows = max(1, _CHUNK // logits_NV.shape[1])
    for start in range(0, len(logits_NV), rows):
        chunk = slice(start, start + rows)
        sums = logits_NV[chunk].softmax(-1, dtype=torch.float32).cumsum(-1)
        draws = (draws_N[chunk, None] * sums[:, -1:]).to(sums.dtype)
        words_N[chunk] = torch.searchsorted(sums, draws, right=True).squeeze(1)
    return words_N.clamp_(max=logits_NV.shape[1] - 1)
