"""The vectors of all examples of an evaluation, compared with each other."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from bertcli.metrics.correlation import mean_ranks
from bertcli.tasks.vector_losses import Key, left_out_candidates

_AT_ONCE = 1 << 24
"""Cosines in memory."""
FAR = 0.25
"""Share of all pairs between a pair's place by its score and that by its cosine, from which it is wrong."""


@dataclass(frozen=True)
class Ranked:
    """Where an anchor finds its positive.

    Attributes:
        rank: of the positive by its cosine, from 1; with ties the middle of them.
        similarity: its cosine.
        candidates: the number of texts that are compared, with the positive.
        nearest: the example and the place in it of the nearest of the other texts; None: there is none.
        nearest_similarity: its cosine.
    """

    rank: int
    similarity: float
    candidates: int
    nearest: tuple[int, int] | None
    nearest_similarity: float

    @property
    def is_right(self) -> bool:
        """Whether no other text is nearer."""
        return self.rank == 1

    def as_json(self) -> dict[str, Any]:
        """Rank, and the two cosines."""
        shown = {"rank": self.rank, "similarity": self.similarity}
        return shown if self.nearest is None else shown | {"nearest_similarity": self.nearest_similarity}


@dataclass(frozen=True)
class Scored:
    """The cosine of a pair, and its places from 0 to 1 among all pairs, by the cosine and by the score."""

    similarity: float
    place: float
    right_place: float

    @property
    def is_right(self) -> bool:
        """Whether the two places are not far from each other."""
        return abs(self.place - self.right_place) < FAR

    def as_json(self) -> dict[str, Any]:
        """All three."""
        return {"similarity": self.similarity, "place": self.place, "right_place": self.right_place}


def rank_positives(
    vectors_NCD: Tensor, keys: Sequence[Sequence[Key]], scale: float
) -> tuple[float, list[Ranked]]:
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
    left_out = _by_row(left_out_candidates(keys, list(columns), own), len(keys))
    for start in range(0, len(keys), step):
        cosines_BK = unit_NCD[start : start + step, 0] @ candidates_KD.T
        for row, out in enumerate(left_out[start : start + step]):
            cosines_BK[row, out] = -torch.inf
        own_B = torch.tensor(own[start : start + step])
        loss += float(F.cross_entropy(scale * cosines_BK, own_B, reduction="sum"))
        found += _ranked(cosines_BK, own_B, list(first.values()))
    return loss / len(keys), found


def _by_row(pairs: Sequence[tuple[int, int]], rows: int) -> list[list[int]]:
    found: list[list[int]] = [[] for _ in range(rows)]
    for row, column in pairs:
        found[row].append(column)
    return found


def _ranked(cosines_BK: Tensor, own_B: Tensor, places: Sequence[tuple[int, int]]) -> Iterator[Ranked]:
    """One a row; a text that is left out has the cosine -inf."""
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
