"""Masked language model and next sentence prediction (Devlin et al. 2019, section 3.1)."""

from __future__ import annotations

import torch.nn.functional as F
from torch import Tensor, nn

from bertcli.data.batch import Batch
from bertcli.tasks.base import Term


class PretrainingTask:
    """MLM over the masked tokens and, where the batch has labels, NSP over the pairs."""

    def counts(self, batch: Batch) -> dict[str, int]:
        counts = {"mlm": batch.num_masked}
        return counts if batch.labels_B is None else counts | {"nsp": batch.num_rows}

    def terms(self, model: nn.Module, batch: Batch) -> dict[str, Term]:
        output = model(batch.ids_BT, batch.segments_BT, batch.mask_BT, batch.masked_M)
        terms = {"mlm": _term(output.mlm_logits_MV, batch.targets_M)}
        return (
            terms if batch.labels_B is None else terms | {"nsp": _term(output.nsp_logits_B2, batch.labels_B)}
        )


def _term(logits: Tensor, targets: Tensor) -> Term:
    logits = logits.float()  # under bf16, a sum over a vocabulary needs more than 8 bits
    correct = (logits.detach().argmax(dim=-1) == targets).sum()
    return Term(F.cross_entropy(logits, targets, reduction="sum"), correct)
