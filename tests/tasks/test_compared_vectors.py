"""The vectors of an evaluation beside plain loops over all texts."""

from __future__ import annotations

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import rankdata

from bertcli.tasks import compared_vectors
from bertcli.tasks.compared_vectors import FAR, Scored, compare_pairs, rank_positives

SCALE = 20.0


def signs(number: int, seed: int) -> torch.Tensor:
    """Vectors of +-1, whose cosines are exact, so that many are equal."""
    return torch.randint(2, (number, 4), generator=torch.Generator().manual_seed(seed)).float() * 2 - 1


@given(
    rows=st.integers(1, 9),
    texts=st.integers(2, 4),
    distinct=st.integers(2, 20),
    at_once=st.sampled_from([1, 5, 1 << 20]),
    seed=st.integers(0, 1000),
)
def test_each_rank_is_that_of_a_loop_over_all_distinct_texts(
    rows: int, texts: int, distinct: int, at_once: int, seed: int
) -> None:
    table = signs(distinct, seed)
    keys = torch.randint(distinct, (rows, texts), generator=torch.Generator().manual_seed(seed)).tolist()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(compared_vectors, "_AT_ONCE", at_once)
        loss, found = rank_positives(table[torch.tensor(keys)], keys, SCALE)
    everything = {key for row in keys for key in row[1:]}
    losses = []
    for (anchor, positive, *_), ranked in zip(keys, found, strict=True):
        fits = {anchor, *(row[1] for row in keys if row[0] == anchor)}  # other right answers of the anchor
        cosines = {key: float(table[anchor] @ table[key]) / 4 for key in everything - fits | {positive}}
        own, others = cosines[positive], [value for key, value in cosines.items() if key != positive]
        nearer, ties = sum(value > own for value in others), sum(value == own for value in others)
        assert ranked.rank == 1 + nearer + ties // 2
        assert ranked.is_right == (ranked.rank == 1)
        assert (ranked.similarity, ranked.candidates) == (own, len(cosines))
        if ranked.nearest is None:
            assert not others
        else:
            row, place = ranked.nearest
            assert keys[row][place] in cosines.keys() - {positive}
            assert cosines[keys[row][place]] == ranked.nearest_similarity == max(others)
        losses.append(math.log(sum(math.exp(SCALE * (value - own)) for value in cosines.values())))
    assert loss == pytest.approx(sum(losses) / rows, abs=1e-5)


@given(pairs=st.integers(1, 12), seed=st.integers(0, 1000))
def test_each_place_is_the_mean_of_equal_ones(pairs: int, seed: int) -> None:
    vectors = torch.stack([signs(pairs, seed), signs(pairs, seed + 1)], dim=1)
    scores = torch.randint(3, (pairs,), generator=torch.Generator().manual_seed(seed)).float()
    cosines = (vectors[:, 0] * vectors[:, 1]).sum(dim=1) / 4
    places, right = ((rankdata(each) - 1) / max(1, pairs - 1) for each in (cosines, scores))
    found = list(compare_pairs(vectors, scores))
    assert [each.similarity for each in found] == cosines.tolist()
    assert [each.place for each in found] == pytest.approx(places.tolist())
    assert [each.right_place for each in found] == pytest.approx(right.tolist())


def test_a_pair_is_wrong_from_a_quarter_of_all_places_on() -> None:
    assert Scored(0.5, place=0.5, right_place=0.5 + 0.99 * FAR).is_right
    assert not Scored(0.5, place=0.5, right_place=0.5 - FAR).is_right
