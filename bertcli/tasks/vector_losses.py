"""The losses of a batch of vectors, which join all of its rows: multiple negatives ranking, and CoSENT."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Sequence

import torch
import torch.nn.functional as F
from torch import Tensor

Key = Hashable
"""Equal for equal texts."""


def ranking_loss(vectors_BCD: Tensor, keys: Sequence[Sequence[Key]], scale: float) -> Tensor:
    """Cross-entropy of each anchor's own positive among all positives and negatives of the batch.

    Henderson et al. 2017, section 4.4, with cosines times `scale` as logits (Reimers and Gurevych's library).
    Texts that are right for an anchor by another row, and the anchor itself, are no candidates for it.

    Args:
        vectors_BCD: anchor, positive, negatives of each row, fp32.
        keys: of these texts, [B][C].

    Returns the mean over the rows, a scalar.
    """
    unit_BCD = F.normalize(vectors_BCD, dim=-1)
    candidates_KD = unit_BCD[:, 1:].transpose(0, 1).flatten(0, 1)  # all positives, then all first negatives
    logits_BK = scale * unit_BCD[:, 0] @ candidates_KD.T
    columns = [row[place] for place in range(1, len(keys[0])) for row in keys]
    left_out = left_out_candidates(keys, columns, own=range(len(keys)))
    if left_out:
        rows, places = torch.tensor(left_out, device=logits_BK.device).T
        logits_BK = logits_BK.index_put((rows, places), logits_BK.new_tensor(-torch.inf))
    return F.cross_entropy(logits_BK, torch.arange(len(keys), device=logits_BK.device))


def left_out_candidates(
    keys: Sequence[Sequence[Key]], columns: Sequence[Key], own: Sequence[int]
) -> list[tuple[int, int]]:
    """(row, column) of each candidate that is not to be compared with the row's own positive.

    Args:
        keys: anchor, positive and further texts of each row.
        columns: the candidates.
        own: the column of each row's positive.
    """
    right: dict[Key, set[Key]] = defaultdict(set)
    for anchor, positive, *_ in keys:
        right[anchor] |= {anchor, positive}
    places: dict[Key, list[int]] = defaultdict(list)
    for column, key in enumerate(columns):
        places[key].append(column)
    return [
        (row, column)
        for row, (anchor, *_) in enumerate(keys)
        for key in right[anchor]
        for column in places.get(key, ())
        if column != own[row]
    ]


def cosent_loss(vectors_B2D: Tensor, scores_B: Tensor, scale: float) -> Tensor:
    """log(1 + sum of exp(scale * (cos_j - cos_i)) over all rows i with a higher score than row j), a scalar.

    Su 2022, "CoSENT"; by a cumulative sum over the rows in the order of their scores, not over all pairs.
    """
    unit_B2D = F.normalize(vectors_B2D, dim=-1)
    scores_B, order_B = scores_B.sort()
    cosines_B = scale * (unit_B2D[:, 0] * unit_B2D[:, 1]).sum(dim=-1)[order_B]
    nothing = cosines_B.new_tensor([-torch.inf])
    below_B = torch.cat([nothing, cosines_B.logcumsumexp(dim=0)])  # of the first 0, 1, 2 ... rows
    num_lower_B = torch.searchsorted(scores_B, scores_B)
    return torch.cat([cosines_B.new_zeros(1), below_B[num_lower_B] - cosines_B]).logsumexp(dim=0)
