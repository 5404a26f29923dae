"""Replaced token detection: the losses of generator and discriminator (Clark et al. 2020, section 2)."""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from bertcli.batches.batch import Batch
from bertcli.model.architecture import Architecture
from bertcli.model.init import expected_first_mlm_loss
from bertcli.model.pretraining import RtdOutput
from bertcli.objectives.base import Reference, Term, words_reference
from bertcli.objectives.masked_language import round_masked, vocabulary_cross_entropy


class ReplacedTokens:
    """The MLM loss of the generator, plus `weight` times the discriminator's loss over all real tokens.

    A token that the generator guessed right counts as not replaced.
    """

    def __init__(self, weight: float, mask_rate: float, compiled: bool = False) -> None:
        """Build the task. `mask_rate` is that of the batches, for the reference; `compiled` as in
        `MaskedLanguage`."""
        self._weight, self._mask_rate = weight, mask_rate
        self._cross_entropy = (
            torch.compile(vocabulary_cross_entropy) if compiled else vocabulary_cross_entropy
        )

    def counts(self, batch: Batch) -> dict[str, int]:
        return {"mlm": batch.num_masked, "rtd": batch.num_tokens}

    def terms(self, model: nn.Module, batch: Batch) -> dict[str, Term]:
        rounded = round_masked(batch)
        output: RtdOutput = model(
            *(rounded.ids_BT, rounded.segments_BT, rounded.mask_BT, rounded.masked_M), batch.draws_M
        )
        words = self._cross_entropy(output.mlm_logits_MV, rounded.targets_M)
        labels_K = self._labels(batch, output)
        logits_K = output.rtd_logits_K.float()
        loss = F.binary_cross_entropy_with_logits(logits_K, labels_K.float(), reduction="sum")
        said_K = logits_K.detach() > 0
        shares = {
            "rtd_replaced": (labels_K.sum(), torch.tensor(len(labels_K), device=labels_K.device)),
            "rtd_found": ((said_K & labels_K).sum(), labels_K.sum()),
        }
        correct = (said_K == labels_K).sum()
        return {"mlm": words, "rtd": Term(loss, correct, self._weight, shares=shares)}

    def _labels(self, batch: Batch, output: RtdOutput) -> Tensor:
        """The labels bool [K], True for each token that differs from the original."""
        is_replaced = torch.zeros(batch.ids_BT.numel(), dtype=torch.bool, device=batch.ids_BT.device)
        is_replaced[batch.masked_M] = output.sampled_N != batch.targets_M
        return is_replaced[output.real_K]

    def references(
        self, generator: Architecture, unigram_entropy: float, fresh: bool
    ) -> tuple[Reference, ...]:
        """The references as in `MaskedLanguage.references`; `generator` is the generator's architecture."""
        first_loss = expected_first_mlm_loss(generator) if fresh else None
        rate = self._mask_rate
        chance = -rate * math.log(rate) - (1 - rate) * math.log(1 - rate)
        return words_reference(unigram_entropy, first_loss), Reference(
            term="rtd",
            first_loss=math.log(2) if fresh else None,
            chance_loss=chance,
            line=f"rtd by chance: loss {chance:.3f} while every masked token is replaced, accuracy "
            f"{1 - rate:.0%}: all tokens are called original",
            chance_accuracy=1 - rate,
        )
