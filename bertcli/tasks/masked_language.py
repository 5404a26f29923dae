"""Masked language model; if rows are pairs, also their label (Devlin et al. 2019, section 3.1)."""

from __future__ import annotations

import math
from dataclasses import replace

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from bertcli.data.batch import Batch
from bertcli.data.pair_rules import PairRule
from bertcli.model.architecture import Architecture
from bertcli.model.fast.packing import round_up
from bertcli.model.init import expected_first_mlm_loss
from bertcli.model.pretraining import PretrainingOutput
from bertcli.tasks.base import Term
from bertcli.tasks.cross_entropy import IGNORED, vocabulary_cross_entropy
from bertcli.tasks.reference import Reference, words_reference


class MaskedLanguage:
    """MLM over the masked tokens and, if the batch has labels, the pair rule's own term over the rows.

    `compiled`: torch compiles the cross-entropy, which then needs fewer passes over the logits.
    """

    def __init__(self, pairs: PairRule, compiled: bool = False) -> None:
        self._pairs = pairs
        self._cross_entropy = (
            torch.compile(vocabulary_cross_entropy) if compiled else vocabulary_cross_entropy
        )

    def counts(self, batch: Batch) -> dict[str, int]:
        counts = {"mlm": batch.num_masked}
        return counts if batch.labels_B is None else counts | {self._pairs.term: batch.num_rows}

    def terms(self, model: nn.Module, batch: Batch) -> dict[str, Term]:
        batch = round_masked(batch)
        return self.terms_of(model(batch.ids_BT, batch.segments_BT, batch.mask_BT, batch.masked_M), batch)

    def terms_of(self, output: PretrainingOutput, batch: Batch) -> dict[str, Term]:
        """`terms` of a forward pass over a batch of `round_masked`."""
        terms = {"mlm": self._cross_entropy(output.mlm_logits_MV, batch.targets_M)}
        if batch.labels_B is None or output.pair_logits_B2 is None:
            return terms
        return terms | {self._pairs.term: _label_term(output.pair_logits_B2, batch.labels_B)}

    def references(
        self, architecture: Architecture, unigram_entropy: float, fresh: bool
    ) -> tuple[Reference, ...]:
        """The reference of each term.

        Args:
            unigram_entropy: of the corpus, in nats: the loss of a model that knows only word frequencies.
            fresh: the model starts from random weights.
        """
        first_loss = expected_first_mlm_loss(architecture) if fresh else None
        words = words_reference(unigram_entropy, first_loss)
        if not self._pairs.is_pair:
            return (words,)
        num_labels = len(self._pairs.labels)
        loss, accuracy = (
            math.log(num_labels),
            1 / num_labels,
        )  # a batch has equally many rows of each label
        return words, Reference(
            term=self._pairs.term,
            first_loss=loss if fresh else None,
            chance_loss=loss,
            line=f"{self._pairs.term} by chance: loss {loss:.3f}, accuracy {accuracy:.0%}; label 0 is "
            f"{self._pairs.labels[0]}",
            chance_accuracy=accuracy,
        )


def round_masked(batch: Batch) -> Batch:
    """The batch with ignored masked tokens appended, up to `fast.packing.round_up` of their number."""
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
