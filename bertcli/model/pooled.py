"""The body and, where a folder brings one, the pooler: what sentence vectors are made of."""

from __future__ import annotations

from torch import Tensor, nn

from bertcli.model.architecture import Architecture
from bertcli.model.bert import Bert
from bertcli.model.init import initialize
from bertcli.model.pooler import Pooler


class PooledBert(nn.Module):
    """BERT without a head, freshly initialized; `pooler` is None in one that was trained without."""

    def __init__(self, architecture: Architecture, pooler: bool) -> None:
        super().__init__()
        self.architecture = architecture
        self.bert = Bert(architecture)
        self.pooler = Pooler(architecture) if pooler else None
        initialize(self, architecture.init_std)

    def forward(self, ids_BT: Tensor, segments_BT: Tensor, mask_BT: Tensor | None = None) -> Tensor:
        """Returns hidden_BTD; the arguments are those of `Bert`. `pooler(hidden_BTD[:, 0])` gives
        pooled_BD."""
        return self.bert(ids_BT, segments_BT, mask_BT)
