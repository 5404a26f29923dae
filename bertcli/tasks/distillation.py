"""Distillation: a student learns a teacher's words and hidden states (Sanh et al. 2019, section 3)."""

from __future__ import annotations

from dataclasses import replace

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from bertcli.data.batch import Batch
from bertcli.model.architecture import Architecture
from bertcli.model.pretraining import PretrainingModel, PretrainingOutput
from bertcli.tasks.base import Term
from bertcli.tasks.cross_entropy import IGNORED, soft_divergence
from bertcli.tasks.masked_language import MaskedLanguage, round_masked
from bertcli.tasks.reference import Reference


class Distillation:
    """The terms of `MaskedLanguage`, the teacher's words at the masked tokens (`kl`), and the direction of
    the hidden states at all real tokens (`cosine`).

    The original takes the teacher's words at all tokens by default, and at the masked ones by an option: the
    vocabulary then costs a sixth.
    """

    def __init__(
        self,
        words: MaskedLanguage,
        teacher: PretrainingModel,
        temperature: float,
        weights: tuple[float, float, float],
    ) -> None:
        """`weights`: of kl, mlm and cosine. With the weight 0 mlm is still measured, the others are not."""
        self._words, self._temperature = words, temperature
        self.teacher = teacher.eval().requires_grad_(False)
        kl, mlm, cosine = weights
        self._weights: dict[str, float] = {"kl": kl, "mlm": mlm, "cosine": cosine}

    def counts(self, batch: Batch) -> dict[str, int]:
        counts = {"kl": batch.num_masked, **self._words.counts(batch), "cosine": batch.num_tokens}
        return {name: count for name, count in counts.items() if self._is_measured(name)}

    def _is_measured(self, name: str) -> bool:
        return name not in ("kl", "cosine") or self._weights[name] > 0

    def terms(self, model: nn.Module, batch: Batch) -> dict[str, Term]:
        batch, hidden = round_masked(batch), self._is_measured("cosine")
        inputs = batch.ids_BT, batch.segments_BT, batch.mask_BT, batch.masked_M
        with torch.no_grad():
            taught: PretrainingOutput = self.teacher.to(batch.ids_BT.device)(*inputs, hidden=hidden)
        output: PretrainingOutput = model(*inputs, hidden=hidden)
        terms = self._words.terms_of(output, batch)
        if self._is_measured("kl"):
            counted_M = batch.targets_M != IGNORED
            logits = output.mlm_logits_MV[counted_M], taught.mlm_logits_MV[counted_M]
            shared = min(each.shape[1] for each in logits)  # tables may have more rows than the vocabulary
            own, theirs = (each[:, :shared] for each in logits)
            divergence = soft_divergence(own.float(), theirs.float(), self._temperature)
            terms["kl"] = Term(divergence, correct=None)
        if output.hidden_BTD is not None and taught.hidden_BTD is not None:
            terms["cosine"] = Term(_angles(output.hidden_BTD, taught.hidden_BTD, batch.mask_BT), correct=None)
        return {name: replace(term, weight=self._weights.get(name, 1.0)) for name, term in terms.items()}

    def references(
        self, architecture: Architecture, unigram_entropy: float, fresh: bool
    ) -> tuple[Reference, ...]:
        """As `MaskedLanguage.references`; a student that starts with the teacher's layers has no expected
        first loss."""
        return self._words.references(architecture, unigram_entropy, fresh=fresh)


def _angles(hidden_BTD: Tensor, teacher_BTD: Tensor, mask_BT: Tensor | None) -> Tensor:
    """The sum over real tokens of 1 - cos(student, teacher)."""
    distance_BT = 1.0 - F.cosine_similarity(hidden_BTD.float(), teacher_BTD.float(), dim=-1)
    return (distance_BT if mask_BT is None else distance_BT[mask_BT.to(distance_BT.device)]).sum()
