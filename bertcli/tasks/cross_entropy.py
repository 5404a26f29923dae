"""The cross-entropy of a vocabulary: its sum, its gradient, and how many predictions are right."""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from bertcli.tasks.base import Term

_CHUNK = 1 << 19
"""Logits computed at once in fp32: 2 MB, so that they stay in the cache for all passes."""


IGNORED = -100
"""The target that is not counted, as in torch."""


def vocabulary_cross_entropy(logits_MV: Tensor, targets_M: Tensor) -> Term:
    """The sum over M of -log softmax(logits)[target], in fp32 for logits of any dtype.

    A prediction is right if no other word has a higher logit than the target.
    """
    if logits_MV.device.type == "cpu" and not torch.compiler.is_compiling():
        return Term(*_InChunks.apply(logits_MV, targets_M))  # pyright: ignore[reportGeneralTypeIssues]
    loss = F.cross_entropy(logits_MV.float(), targets_M, reduction="sum", ignore_index=IGNORED)
    at_target_M, highest_M = _at_target_and_highest(logits_MV.detach(), targets_M)
    return Term(loss, _num_right(at_target_M, highest_M, targets_M))


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
    """The gradient, softmax - one-hot, is computed with the loss, from the same softmax of a chunk."""

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
        # The largest probability, 1 / sum(exp(logits - the highest)), is never too small for its logarithm.
        losses_M = highest_M.float() - most_likely_M.log() - at_target_M
        if gradient_MV is not None:
            of_target_M = losses_M.neg().expm1().to(gradient_MV.dtype)  # exp(-loss) - 1
            # Not scatter_, which copies a whole bf16 tensor, nor a bool mask, which reads all of it.
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
