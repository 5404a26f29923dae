"""Hidden states -> one vector a row (Reimers and Gurevych 2019, section 3), and the model that gives them."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from bertcli.config.finetune import PoolingMode
from bertcli.model.architecture import Architecture
from bertcli.model.encoder import Body, first_tokens, mean
from bertcli.model.init import initialize


def pool(hidden_BTD: Tensor, mask_BT: Tensor | None, mode: PoolingMode) -> Tensor:
    """vectors_BD: the mean or the maximum over the real tokens of a row, or the first token's hidden state.

    `mask_BT` (bool): True at real tokens, also special ones; None: no padding.
    """
    if mode == "cls":
        return hidden_BTD[:, 0]
    if mode == "mean":
        return mean(hidden_BTD, mask_BT)
    if mask_BT is None:
        return hidden_BTD.amax(dim=1)
    return hidden_BTD.masked_fill(~mask_BT.to(hidden_BTD.device)[:, :, None], -torch.inf).amax(dim=1)


class VectorModel(nn.Module):
    """The body, whose hidden states are pooled to a vector a row; `normalize`: to length 1."""

    def __init__(
        self, architecture: Architecture, mode: PoolingMode = "mean", normalize: bool = False
    ) -> None:
        super().__init__()
        self.architecture = architecture
        self.mode: PoolingMode = mode
        self.normalize = normalize
        self.body = Body(architecture)
        initialize(self, architecture.init_std)

    def forward(self, ids_BT: Tensor, segments_BT: Tensor, mask_BT: Tensor | None = None) -> Tensor:
        """Returns vectors_BD, fp32; the arguments are those of `Body`."""
        if self.mode == "cls":
            vectors_BD = self.body(ids_BT, segments_BT, mask_BT, first_tokens(ids_BT)).float()
        else:
            vectors_BD = pool(self.body(ids_BT, segments_BT, mask_BT).float(), mask_BT, self.mode)
        return F.normalize(vectors_BD, dim=-1) if self.normalize else vectors_BD
