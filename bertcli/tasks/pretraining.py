"""Masked language model and next sentence prediction (Devlin et al. 2019, section 3.1)."""

from __future__ import annotations

from dataclasses import replace

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from bertcli.data.batch import Batch
from bertcli.model.packing import round_up
from bertcli.tasks.base import Term
from bertcli.tasks.cross_entropy import IGNORED, vocabulary_cross_entropy


class PretrainingTask:
    """MLM over the masked tokens and, where the batch has labels, NSP over the pairs.

    `compiled`: have torch compile the cross-entropy, whose many passes over all logits then become few.
    """

    def __init__(self, compiled: bool = False) -> None:
        self._cross_entropy = (
            torch.compile(vocabulary_cross_entropy) if compiled else vocabulary_cross_entropy
        )

    def counts(self, batch: Batch) -> dict[str, int]:
        counts = {"mlm": batch.num_masked}
        return counts if batch.labels_B is None else counts | {"nsp": batch.num_rows}

    def terms(self, model: nn.Module, batch: Batch) -> dict[str, Term]:
        batch = round_masked(batch)
        output = model(batch.ids_BT, batch.segments_BT, batch.mask_BT, batch.masked_M)
        terms = {"mlm": self._cross_entropy(output.mlm_logits_MV, batch.targets_M)}
        if batch.labels_B is None:
            return terms
        return terms | {"nsp": _label_term(output.nsp_logits_B2, batch.labels_B)}


def round_masked(batch: Batch) -> Batch:
    """The batch with masked tokens that do not count, up to one of few numbers (`model.packing.round_up`)."""
    more = round_up(batch.num_masked) - batch.num_masked
    if not more:
        return batch
    return replace(
        batch,
        rows_M=F.pad(batch.rows_M, (0, more)),
        columns_M=F.pad(batch.columns_M, (0, more)),
        targets_M=F.pad(batch.targets_M, (0, more), value=IGNORED),
    )


def _label_term(logits_B2: Tensor, labels_B: Tensor) -> Term:
    correct = (logits_B2.detach().argmax(dim=-1) == labels_B).sum()
    return Term(F.cross_entropy(logits_B2.float(), labels_B, reduction="sum"), correct)
