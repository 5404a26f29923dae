"""Masked language modeling: the cross-entropy over a vocabulary, and the task with its pair term."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from bertcli.batches.batch import Batch
from bertcli.model.fast.packing import round_up
from bertcli.model.pretraining import PretrainingOutput
from bertcli.objectives.base import Term
from bertcli.objectives.registry import PairRule

_CHUNK = 1 << 19
"""The number of logits computed at once in fp32: 2 MB, so that they stay in the cache for all passes."""


IGNORED = -100
"""The target of a token that is not counted, as in torch."""


def vocabulary_cross_entropy(logits_MV: Tensor, targets_M: Tensor) -> Term:
    """The sum over M of -log softmax(logits)[target], in fp32 for logits of any dtype, and right predictions.

    A prediction is right if no other word has a higher logit than the target.
    """
    if logits_MV.device.type == "cpu" and not torch.compiler.is_compiling():
        return Term(*_InChunks.apply(logits_MV, targets_M))  # pyright: ignore[reportGeneralTypeIssues]
    loss = F.cross_entropy(logits_MV.float(), targets_M, reduction="sum", ignore_index=IGNORED)
    at_target_M, highest_M = _at_target_and_highest(logits_MV.detach(), targets_M)
    return Term(loss, _num_right(at_target_M, highest_M, targets_M))


def cross_entropy(compiled: bool) -> Callable[[Tensor, Tensor], Term]:
    """`vocabulary_cross_entropy`, if `compiled` by torch."""
    return torch.compile(vocabulary_cross_entropy) if compiled else vocabulary_cross_entropy


def soft_divergence(logits: Tensor, teacher: Tensor, temperature: float) -> Tensor:
    """The sum over rows of T^2 KL(teacher || student) at temperature T (Hinton et al. 2015, section 2).

    Both are float32 [..., V].
    """
    own, theirs = ((each / temperature).log_softmax(-1) for each in (logits, teacher))
    return F.kl_div(own, theirs, reduction="sum", log_target=True) * temperature**2


def _at_target_and_highest(logits_MV: Tensor, targets_M: Tensor) -> tuple[Tensor, Tensor]:
    return logits_MV.gather(1, targets_M.clamp_min(0)[:, None]).squeeze(1), logits_MV.amax(-1)


def _num_right(at_target_M: Tensor, highest_M: Tensor, targets_M: Tensor) -> Tensor:
    return ((at_target_M == highest_M) & (targets_M != IGNORED)).sum()


class _InChunks(torch.autograd.Function):
    """The cross-entropy in chunks; loss and gradient (softmax - one-hot) share one softmax per chunk."""

    @staticmethod
    def forward(ctx: Any, logits_MV: Tensor, targets_M: Tensor) -> tuple[Tensor, Tensor]:
        gradient_MV = torch.empty_like(logits_MV) if logits_MV.requires_grad else None
        most_likely_M = torch.empty(len(logits_MV))
        rows = max(1, _CHUNK // logits_MV.shape[1])
        for start in range(0, len(logits_MV), rows):
            chunk = slice(start, start + rows)
            softmax = logits_MV[chunk].softmax(-1, dtype=torch.float32)
            torch.amax(softmax, -1, out=most_likely_M[chunk])
            if gradient_MV is not None:
                gradient_MV[chunk] = softmax
        at_target_M, highest_M = _at_target_and_highest(logits_MV, targets_M)
        # The largest probability, 1 / sum(exp(logits - highest)), is never too small for a logarithm.
        losses_M = highest_M.float() - most_likely_M.log() - at_target_M
        if gradient_MV is not None:
            of_target_M = losses_M.neg().expm1().to(gradient_MV.dtype)  # exp(-loss) - 1
            # Indexing: scatter_ would copy a whole bf16 tensor, and a bool mask would read all of it.
            gradient_MV[torch.arange(len(targets_M)), targets_M.clamp_min(0)] = of_target_M
            gradient_MV.index_fill_(0, (targets_M == IGNORED).nonzero().squeeze(1), 0.0)
        ctx.save_for_backward(gradient_MV)
        correct = _num_right(at_target_M, highest_M, targets_M)
        ctx.mark_non_differentiable(correct)
        return losses_M.masked_fill_(targets_M == IGNORED, 0.0).sum(), correct

    @staticmethod
    def backward(ctx: Any, of_loss: Tensor, _: Tensor) -> tuple[Tensor, None]:  # pyright: ignore[reportIncompatibleMethodOverride]
        (gradient_MV,) = ctx.saved_tensors
        return gradient_MV.mul_(of_loss.to(gradient_MV.dtype)), None  # a second pass would raise


class MaskedLanguage:
    """MLM over the masked tokens and, if the batch has labels, the pair rule's own term over the rows.

    If `compiled`, torch compiles the cross-entropy, which then needs fewer passes over the logits.
    """

    def __init__(self, pairs: PairRule, compiled: bool = False) -> None:
        self._pairs, self._cross_entropy = pairs, cross_entropy(compiled)

    def counts(self, batch: Batch) -> dict[str, int]:
        counts = {"mlm": batch.num_masked}
        return counts if batch.labels_B is None else counts | {self._pairs.term: batch.num_rows}

    def terms(self, model: nn.Module, batch: Batch) -> dict[str, Term]:
        batch = round_masked(batch)
        return self.terms_of(model(batch.ids_BT, batch.segments_BT, batch.mask_BT, batch.masked_M), batch)

    def terms_of(self, output: PretrainingOutput, batch: Batch) -> dict[str, Term]:
        """The terms of a forward pass over a batch from `round_masked`."""
        terms = {"mlm": self._cross_entropy(output.mlm_logits_MV, batch.targets_M)}
        labels_B, logits_B2 = batch.labels_B, output.pair_logits_B2
        if labels_B is not None and logits_B2 is not None:
            correct = (logits_B2.detach().argmax(dim=-1) == labels_B).sum()
            loss = F.cross_entropy(logits_B2.float(), labels_B, reduction="sum")
            terms[self._pairs.term] = Term(loss, correct)
        return terms


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
