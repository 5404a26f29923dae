"""The model that tells next sentences and no words: rows of ids in, logits of the pair out."""

from __future__ import annotations

from torch import Tensor, nn

from bertcli.model.architecture import Architecture
from bertcli.model.bert import Bert
from bertcli.model.heads import NspHead
from bertcli.model.init import initialize
from bertcli.model.pooler import Pooler


class BertForNextSentence(nn.Module):
    """BERT with the NSP head alone, freshly initialized."""

    def __init__(self, architecture: Architecture) -> None:
        super().__init__()
        self.architecture = architecture
        self.bert = Bert(architecture)
        self.pooler = Pooler(architecture)
        self.nsp_head = NspHead(architecture)
        initialize(self, architecture.init_std)

    def forward(self, ids_BT: Tensor, segments_BT: Tensor, mask_BT: Tensor | None = None) -> Tensor:
        """Returns logits_B2 (0: IsNext, 1: NotNext); the arguments are those of `Bert`."""
        return self.nsp_head(self.pooler(self.bert(ids_BT, segments_BT, mask_BT)[:, 0]))
