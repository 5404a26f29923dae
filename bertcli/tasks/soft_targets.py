"""A labeled task whose answers a fine-tuned teacher gives as well (Hinton et al. 2015, section 2)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from bertcli.tasks.base import Term
from bertcli.tasks.cross_entropy import soft_divergence
from bertcli.tasks.supervised import LabeledBatch, LabeledTask, forward


@dataclass(frozen=True)
class SoftTargets:
    """For the training loop: the terms `teacher` and `labels`, with these weights."""

    task: LabeledTask
    teacher: nn.Module
    temperature: float
    weights: tuple[float, float]

    def counts(self, batch: LabeledBatch) -> dict[str, float]:
        return dict.fromkeys(("teacher", "labels"), self.task.count(batch))

    def terms(self, model: nn.Module, batch: LabeledBatch) -> dict[str, Term]:
        logits = forward(model, batch)
        with torch.no_grad():
            taught = forward(self.teacher.to(logits.device), batch)
        loss = soft_loss(
            self.task.answers(logits, batch),
            self.task.answers(taught, batch),
            kind=self.task.answer_kind,
            temperature=self.temperature,
        )
        of_teacher, of_labels = self.weights
        own = self.task.term(logits, batch)
        return {
            "teacher": Term(loss, correct=None, weight=of_teacher, unit=own.unit),
            "labels": replace(own, weight=of_labels),
        }


def soft_loss(
    answers: Tensor, taught: Tensor, kind: Literal["softmax", "sigmoid", "value"], temperature: float
) -> Tensor:
    """The sum over answers of T^2 KL(teacher || student) at temperature T, or of the squared difference.

    `answers` and `taught`: float32 [N, C], or [N, parts, C], of which the mean over the parts is taken.
    """
    if kind == "value":
        return F.mse_loss(answers, taught, reduction="sum")
    own, theirs = answers / temperature, taught / temperature
    if kind == "sigmoid":
        wanted = theirs.sigmoid()
        entropy = F.binary_cross_entropy_with_logits(theirs, wanted, reduction="sum")
        return (F.binary_cross_entropy_with_logits(own, wanted, reduction="sum") - entropy) * temperature**2
    parts = answers.shape[1] if answers.ndim == 3 else 1
    return soft_divergence(answers, taught, temperature) / parts
