"""Vectors that are compared with each other: the losses of a batch, and the scores of an evaluation."""

from collections import defaultdict
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from bertcli.system.terminal import number, percent, short
from bertcli.tasks.examples import SimilarExample
from bertcli.tasks.scores import mean_ranks
from bertcli.tasks.shown import LONGEST, Mistake, Passage, Piece, Prediction, plain_passages

Key = Hashable
"""A value that is equal for equal texts."""
Keys = Sequence[Sequence[Key]]
"""The keys of all texts of each row, in the order of their vectors."""


def ranking_loss(vectors_BCD: Tensor, keys: Keys, scale: float) -> Tensor:
    """Cross-entropy of each anchor's own positive among all positives and negatives of the batch.

    The loss is that of Henderson et al. 2017, section 4.4, with cosines times `scale` as logits (Reimers and
    Gurevych's library). The candidates of an anchor exclude the anchor itself and its positives in other
    rows.

    Args:
        vectors_BCD: anchor, positive, negatives of each row, fp32.
        keys: the keys of these texts, [B][C].

    Returns the mean over the rows, a scalar.
    """
    unit_BCD = F.normalize(vectors_BCD, dim=-1)
    candidates_KD = unit_BCD[:, 1:].transpose(0, 1).flatten(0, 1)  # all positives, then all first negatives
    logits_BK = scale * unit_BCD[:, 0] @ candidates_KD.T
    columns = [row[place] for place in range(1, len(keys[0])) for row in keys]
    left_out = left_out_candidates(keys, columns, own=range(len(keys)))
    if pairs := [(row, column) for row, out in enumerate(left_out) for column in out]:
        rows, places = torch.tensor(pairs, device=logits_BK.device).T
        logits_BK = logits_BK.index_put((rows, places), logits_BK.new_tensor(-torch.inf))
    return F.cross_entropy(logits_BK, torch.arange(len(keys), device=logits_BK.device))


def left_out_candidates(keys: Keys, columns: Sequence[Key], own: Sequence[int]) -> list[list[int]]:
    """The columns of the candidates that are not compared with each row's own positive.

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
        [column for key in right[anchor] for column in places.get(key, ()) if column != own[row]]
        for row, (anchor, *_) in enumerate(keys)
    ]


def cosent_loss(vectors_B2D: Tensor, scores_B: Tensor, scale: float) -> Tensor:
    """log(1 + sum of exp(scale * (cos_j - cos_i)) over all rows i with a higher score than row j), a scalar.

    The loss is CoSENT (Su 2022). A cumulative sum over the rows in the order of their scores replaces the sum
    over all pairs.
    """
    unit_B2D = F.normalize(vectors_B2D, dim=-1)
    scores_B, order_B = scores_B.sort()
    cosines_B = scale * (unit_B2D[:, 0] * unit_B2D[:, 1]).sum(dim=-1)[order_B]
    nothing = cosines_B.new_tensor([-torch.inf])
    below_B = torch.cat([nothing, cosines_B.logcumsumexp(dim=0)])  # for the first 0, 1, 2 ... rows
    num_lower_B = torch.searchsorted(scores_B, scores_B)
    return torch.cat([cosines_B.new_zeros(1), below_B[num_lower_B] - cosines_B]).logsumexp(dim=0)


_AT_ONCE = 1 << 24
"""Number of cosines in memory at once."""
FAR = 0.25
"""Least distance that counts as wrong, between a pair's places (0 to 1) by its score and by its cosine."""


@dataclass(frozen=True)
class Ranked(Prediction):
    """The rank of an anchor's positive among the candidates.

    Attributes:
        rank: the rank of the positive by its cosine, from 1; among ties the middle rank.
        similarity: the cosine of the positive.
        candidates: the number of texts that are compared, the positive included.
        nearest: the nearest other text, as its example and its place in it; None if there is none.
        nearest_similarity: the cosine of that text.
    """

    rank: int
    similarity: float
    candidates: int
    nearest: tuple[int, int] | None
    nearest_similarity: float

    @property
    def is_right(self) -> bool:
        """True if the rank is 1."""
        return self.rank == 1

    def as_json(self) -> dict[str, Any]:
        """Rank, and the two cosines."""
        shown = {"rank": self.rank, "similarity": self.similarity}
        return shown if self.nearest is None else shown | {"nearest_similarity": self.nearest_similarity}

    def mistake(self, example: SimilarExample, examples: Sequence[SimilarExample]) -> Mistake:
        """The positive and the text of `examples` that is nearer."""
        assert self.nearest is not None  # without another text, no answer is wrong
        other, place = self.nearest
        texts = (*example.texts[:2], examples[other].texts[place])
        anchor, positive, nearest = (short(text, LONGEST // 3) for text in texts)
        passages = [
            Passage("anchor", [Piece(anchor)]),
            Passage("positive", [Piece(positive, "right", number(self.similarity))]),
            Passage("nearest", [Piece(nearest, "given", number(self.nearest_similarity))]),
        ]
        return Mistake(passages, self.rank, score=f"{number(self.rank)} of {number(self.candidates)}")


@dataclass(frozen=True)
class Scored(Prediction):
    """The cosine of a pair, and its places from 0 to 1 among all pairs, by the cosine and by the score."""

    similarity: float
    place: float
    right_place: float

    @property
    def is_right(self) -> bool:
        """True if the two places are less than `FAR` apart."""
        return abs(self.place - self.right_place) < FAR

    def mistake(self, example: SimilarExample, examples: Sequence[SimilarExample]) -> Mistake:
        """The score beside the cosine; `examples` are not looked at."""
        off = abs(self.place - self.right_place)
        right, given, score = number(example.score), number(self.similarity), f"off by {percent(off)}"
        return Mistake(plain_passages(example.texts), off, right=right, given=given, score=score)


def rank_positives(vectors_NCD: Tensor, keys: Keys, scale: float) -> tuple[float, list[Ranked]]:
    """The mean of `ranking_loss` with all distinct texts as candidates, and the rank of each positive.

    The candidates are all positives and negatives; `left_out_candidates` says which are not compared.
    """
    unit_NCD = F.normalize(vectors_NCD.float(), dim=-1)
    first: dict[Key, tuple[int, int]] = {}
    for place in range(1, len(keys[0])):
        for row, each in enumerate(keys):
            first.setdefault(each[place], (row, place))
    columns = {key: column for column, key in enumerate(first)}
    own = [columns[each[1]] for each in keys]
    rows, places = torch.tensor(list(first.values())).T
    candidates_KD = unit_NCD[rows, places]
    found, loss = list[Ranked](), 0.0
    step = max(1, _AT_ONCE // len(columns))
    left_out = left_out_candidates(keys, list(columns), own)
    for start in range(0, len(keys), step):
        cosines_BK = unit_NCD[start : start + step, 0] @ candidates_KD.T
        for row, out in enumerate(left_out[start : start + step]):
            cosines_BK[row, out] = -torch.inf
        own_B = torch.tensor(own[start : start + step])
        loss += float(F.cross_entropy(scale * cosines_BK, own_B, reduction="sum"))
        found += _ranked(cosines_BK, own_B, list(first.values()))
    return loss / len(keys), found


def _ranked(cosines_BK: Tensor, own_B: Tensor, places: Sequence[tuple[int, int]]) -> Iterator[Ranked]:
    """A `Ranked` for each row; a text that is left out has the cosine -inf."""
    of_own_B1 = cosines_BK.gather(1, own_B[:, None])
    nearer_B = (cosines_BK > of_own_B1).sum(dim=1)
    ties_B = (cosines_BK == of_own_B1).sum(dim=1) - 1
    compared_B = (cosines_BK > -torch.inf).sum(dim=1)
    others_BK = cosines_BK.scatter(1, own_B[:, None], -torch.inf)
    nearest_B = others_BK.max(dim=1)
    columns = (1 + nearer_B + ties_B // 2, of_own_B1[:, 0], compared_B, nearest_B.indices, nearest_B.values)
    for rank, similarity, candidates, nearest, value in zip(*(c.tolist() for c in columns), strict=True):
        other = places[nearest] if candidates > 1 else None
        yield Ranked(rank, similarity, candidates, nearest=other, nearest_similarity=value)


def compare_pairs(vectors_N2D: Tensor, scores_N: Tensor) -> Iterator[Scored]:
    """The cosine of each pair, with its places."""
    unit_N2D = F.normalize(vectors_N2D.float(), dim=-1)
    cosines_N = (unit_N2D[:, 0] * unit_N2D[:, 1]).sum(dim=-1)
    last = max(1, len(cosines_N) - 1)
    by_cosine, by_score = (((mean_ranks(each.numpy()) - 1) / last).tolist() for each in (cosines_N, scores_N))
    for cosine, place, right in zip(cosines_N.tolist(), by_cosine, by_score, strict=True):
        yield Scored(cosine, place, right)
