"""The pretraining model: rows of ids -> logits of its objectives."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor, nn

from bertcli.model.architecture import Architecture
from bertcli.model.encoder import Body, first_tokens
from bertcli.model.fast.packing import take
from bertcli.model.heads import MlmHead, PairHead, Pooler
from bertcli.model.init import initialize, initialize_outputs
from bertcli.model.mask_decoder import MaskDecoder


class PretrainingOutput(NamedTuple):
    mlm_logits_MV: Tensor
    pair_logits_B2: Tensor | None
    """As `heads.PairHead`; None in a model without one."""
    hidden_BTD: Tensor | None = None
    """Of the last layer, where it was asked for."""


class PretrainingModel(nn.Module):
    """The body with its pretraining heads (Devlin et al. 2019, section 3.1), freshly initialized.

    `pair_head=False`: without the pair head and its pooler.
    """

    def __init__(self, architecture: Architecture, pair_head: bool = True) -> None:
        super().__init__()
        self.architecture = architecture
        self.body = Body(architecture)
        self.pooler = Pooler(architecture) if pair_head else None
        self.mlm_head = MlmHead(architecture)
        self.pair_head = PairHead(architecture) if pair_head else None
        self.mask_decoder = MaskDecoder(architecture) if architecture.mask_decoder else None
        initialize(self, architecture.init_std)
        if architecture.pre_norm:
            initialize_outputs(self, architecture)

    def forward(
        self,
        ids_BT: Tensor,
        segments_BT: Tensor,
        mask_BT: Tensor | None = None,
        masked_M: Tensor | None = None,
        hidden: bool = False,
    ) -> PretrainingOutput:
        """Logits of the words at `masked_M`, and of each row's pair; other arguments are those of `Body`.

        Only the tokens `masked_M` (int64, flat positions b * T + t of real ones; None: all B * T) go through
        the MLM head, whose projection to the vocabulary costs more than the encoder of small models. Only
        they and the first tokens go through most of the last layer; with `hidden` all tokens do.
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
