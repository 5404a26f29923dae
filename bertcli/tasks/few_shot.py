"""Few rows a label: the vectors of texts with the same label are brought together, then labels are learned.

The two phases are those of SetFit (Tunstall et al. 2022, section 3). The first one differs: a batch is
computed once, and all pairs of its texts are compared, not a pair for each two texts that are computed.
"""

from collections.abc import Sequence
from dataclasses import replace

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from bertcli.batches.order import PairOrder
from bertcli.objectives.base import JointTask, Term
from bertcli.tasks.classification import Classification
from bertcli.tasks.supervised import Items, LabeledBatch

PASSES = 6
"""How often an epoch reads every row, besides the rows that are drawn as their partners."""
CONTRAST = 2 / 3
"""Share of the steps that compare vectors; the others learn the labels alone."""
TEMPERATURE = 0.1
"""Divisor of the cosines (Khosla et al. 2020, section 4.4)."""


class FewShot(Classification, JointTask):
    """A classification in training. Its model is loaded as any `Classification`."""

    head_rate = 30.0  # in so few steps, the rate of the body would leave the logits near 0

    def order(self, items: Items, batch_size: int, seed: int) -> PairOrder:
        """Batches in which most texts have another one with their label."""
        return PairOrder([item.target for item in items], batch_size, seed, passes=PASSES)

    def outputs(self, model: nn.Module, batch: LabeledBatch) -> Tensor:
        """The logits of all rows and their vectors, [rows, C + D] (`model.task_models.SequenceModel`)."""
        return model(*batch.rows, with_vectors=True)

    def terms(self, model: nn.Module, batch: LabeledBatch) -> dict[str, Term]:
        return {"": self.joint_term(self.outputs(model, batch), [batch])}

    def joint_term(self, outputs: Tensor, batches: Sequence[LabeledBatch]) -> Term:
        batch = replace(batches[0], items=tuple(item for each in batches for item in each.items))
        labels = len(self.labels)
        loss = self.term(outputs[:, :labels], batch).loss
        if batch.progress < CONTRAST:
            targets_B = torch.tensor([item.target for item in batch.items], device=outputs.device)
            contrast = like_and_unlike(self.answers(outputs[:, labels:], batch), targets_B, TEMPERATURE)
            loss = loss + len(batch.items) * contrast
        return Term(loss)


def like_and_unlike(vectors_BD: Tensor, classes_B: Tensor, temperature: float) -> Tensor:
    """The cross-entropy of choosing, for each vector, one of its class among all others, by their cosines.

    The loss is the supervised contrast of Khosla et al. 2020 (equation 2): the mean over the vectors of a
    class, then over all vectors that are not alone in their class. It is 0 if all are.

    Args:
        vectors_BD: float32.
        classes_B: int64.
        temperature: the divisor of the cosines.
    """
    unit_BD = F.normalize(vectors_BD, dim=-1)
    itself_BB = torch.eye(len(unit_BD), dtype=torch.bool, device=unit_BD.device)
    logits_BB = (unit_BD @ unit_BD.T / temperature).masked_fill(itself_BB, -torch.inf)
    losses_BB = -logits_BB.log_softmax(dim=-1)
    like_BB = (classes_B[:, None] == classes_B) & ~itself_BB
    numbers_B = like_BB.sum(dim=-1)
    sums_B = losses_BB.masked_fill(~like_BB, 0.0).sum(dim=-1)
    return (sums_B / numbers_B.clamp_min(1)).sum() / (numbers_B > 0).sum().clamp_min(1)
