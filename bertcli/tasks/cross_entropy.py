"""The cross-entropy of a vocabulary: its sum, its gradient, and how many predictions are right."""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from bertcli.tasks.base import Term

_CHUNK = 1 << 18
"""Logits computed at once in fp32: 1 MB, which stays in a core's cache from the first pass to the last."""


IGNORED = -100
"""A target that counts nothing, as torch has it."""


def vocabulary_cross_entropy(logits_MV: Tensor, targets_M: Tensor) -> Term:
    """The sum over M of -log softmax(logits)[target], in fp32 whatever the logits are in.

    A prediction is right where no other word has a higher logit than the target.
    """
    if logits_MV.device.type == "cpu" and not torch.compiler.is_compiling():
        return Term(*_InChunks.apply(logits_MV, targets_M))  # pyright: ignore[reportGeneralTypeIssues]
    loss = F.cross_entropy(logits_MV.float(), targets_M, reduction="sum", ignore_index=IGNORED)
    return Term(loss, _num_right(logits_MV.detach(), targets_M))


def _num_right(logits_MV: Tensor, targets_M: Tensor) -> Tensor:
    at_target_M = logits_MV.gather(1, targets_M.clamp_min(0)[:, None]).squeeze(1)
    return ((at_target_M == logits_MV.amax(-1)) & (targets_M != IGNORED)).sum()


class _InChunks(torch.autograd.Function):
    """The gradient, softmax - one-hot, is made with the loss, while a chunk's softmax is at hand."""

    @staticmethod
    def forward(ctx: Any, logits_MV: Tensor, targets_M: Tensor) -> tuple[Tensor, Tensor]:
        gradient_MV = torch.empty_like(logits_MV) if logits_MV.requires_grad else None
        loss, correct = logits_MV.new_zeros((), dtype=torch.float32), targets_M.new_zeros(())
        rows = max(1, _CHUNK // logits_MV.shape[1])
        for start in range(0, len(logits_MV), rows):
            logits, targets = logits_MV[start : start + rows], targets_M[start : start + rows]
            log_softmax = logits.log_softmax(-1, dtype=torch.float32)
            loss += F.nll_loss(log_softmax, targets, reduction="sum", ignore_index=IGNORED)
            correct += _num_right(logits, targets)
            if gradient_MV is not None:
                softmax = log_softmax.exp_()
                softmax[torch.arange(len(targets)), targets.clamp_min(0)] -= 1.0
                if (ignored := targets == IGNORED).any():
                    softmax[ignored] = 0.0
                gradient_MV[start : start + rows] = softmax
        ctx.save_for_backward(gradient_MV)
        ctx.mark_non_differentiable(correct)
        return loss, correct

    @staticmethod
    def backward(ctx: Any, of_loss: Tensor, _: Tensor) -> tuple[Tensor, None]:  # pyright: ignore[reportIncompatibleMethodOverride]
        (gradient_MV,) = ctx.saved_tensors
        return gradient_MV.mul_(of_loss.to(gradient_MV.dtype)), None  # a second pass would raise
