"""The losses of sentence vectors beside plain loops over all pairs of rows."""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F
from hypothesis import given
from hypothesis import strategies as st

from bertcli.tasks.compared_vectors import cosent_loss, ranking_loss

SCALE = 20.0


def cosine(a: torch.Tensor, b: torch.Tensor) -> float:
    return float(F.cosine_similarity(a, b, dim=0))


@given(
    rows=st.integers(1, 7),
    texts=st.integers(2, 4),
    distinct=st.integers(2, 30),
    seed=st.integers(0, 1000),
)
def test_ranking_is_the_cross_entropy_over_texts_that_do_not_fit(
    rows: int, texts: int, distinct: int, seed: int
) -> None:
    generator = torch.Generator().manual_seed(seed)
    table = torch.randn(distinct, 6, generator=generator, dtype=torch.float64)
    keys = torch.randint(distinct, (rows, texts), generator=generator)
    right = {
        int(anchor): {int(row[1]) for row in keys if row[0] == anchor} | {int(anchor)}
        for anchor in keys[:, 0]
    }
    losses = []
    for number, row in enumerate(keys.tolist()):
        logits, own = [], SCALE * cosine(table[row[0]], table[row[1]])
        for place in range(1, texts):
            for other, candidate in enumerate(keys[:, place].tolist()):
                if (other, place) == (number, 1) or candidate not in right[row[0]]:
                    logits.append(SCALE * cosine(table[row[0]], table[candidate]))
        losses.append(math.log(sum(math.exp(each - own) for each in logits)))
    found = ranking_loss(table[keys], keys.tolist(), SCALE)
    torch.testing.assert_close(float(found), sum(losses) / rows, rtol=1e-9, atol=1e-9)


@given(rows=st.integers(1, 9), scores=st.integers(1, 5), seed=st.integers(0, 1000))
def test_cosent_goes_over_all_pairs_with_unlike_scores(rows: int, scores: int, seed: int) -> None:
    generator = torch.Generator().manual_seed(seed)
    vectors = torch.randn(rows, 2, 6, generator=generator, dtype=torch.float64)
    given_scores = torch.randint(scores, (rows,), generator=generator).double()
    cosines = [cosine(*row) for row in vectors]
    total = sum(
        math.exp(SCALE * (cosines[lower] - cosines[higher]))
        for higher in range(rows)
        for lower in range(rows)
        if given_scores[higher] > given_scores[lower]
    )
    found = cosent_loss(vectors, given_scores, SCALE)
    torch.testing.assert_close(float(found), math.log(1 + total), rtol=1e-9, atol=1e-9)
