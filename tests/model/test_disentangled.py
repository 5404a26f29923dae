"""Plain disentangled attention is the paper's equation, and its rows of the table are the released code's."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from torch import Tensor

from bertcli.model.architecture import Architecture, Relative
from bertcli.model.disentangled import (
    DisentangledAttention,
    RelativeTable,
    attend,
    disentangled_probabilities,
    distance_rows,
)
from bertcli.model.seam import plain_path

B, N, T, H = 3, 5, 7, 11
BOTH = Relative(content_to_position=True, position_to_content=True, max_distance=40)


@pytest.fixture
def heads() -> Tensor:
    torch.manual_seed(0)
    return torch.randn(3, B, N, T, H, dtype=torch.float64)


@pytest.fixture
def positions() -> Tensor:
    torch.manual_seed(1)
    return torch.randn(2, N, 2 * T - 1, H, dtype=torch.float64)


@pytest.mark.parametrize("terms", [(True, True), (True, False), (False, True)])
def test_it_is_the_papers_equation_token_by_token(
    heads: Tensor, positions: Tensor, terms: tuple[bool, bool]
) -> None:
    query, key, value = heads
    given = [each if there else None for each, there in zip(positions, terms, strict=True)]
    with plain_path():
        context = attend(query, key, value, *given, mask_B11T=None, dropout=0.0)
    b, n, i = 2, 3, 4
    scores = torch.empty(T, dtype=torch.float64)
    for j in range(T):
        distance = T - 1 + i - j
        scores[j] = query[b, n, i] @ key[b, n, j]
        if terms[0]:
            scores[j] += query[b, n, i] @ positions[0, n, distance]
        if terms[1]:
            scores[j] += key[b, n, j] @ positions[1, n, distance]
    weights = (scores / (H * (1 + sum(terms))) ** 0.5).softmax(0)
    probabilities = disentangled_probabilities(query, key, *given, mask_B11T=None)
    torch.testing.assert_close(probabilities[b, n, i], weights)
    torch.testing.assert_close(context[b, n, i], weights @ value[b, n])


def test_nothing_looks_at_padding(heads: Tensor, positions: Tensor) -> None:
    mask_B11T = (torch.arange(T) < torch.tensor([[T], [1], [4]]))[:, None, None, :]
    probabilities = disentangled_probabilities(heads[0], heads[1], *positions, mask_B11T=mask_B11T)
    assert (probabilities.masked_select(~mask_B11T) == 0).all()
    torch.testing.assert_close(probabilities.sum(-1), torch.ones(B, N, T, dtype=torch.float64))


@pytest.mark.parametrize(
    ("buckets", "farthest"), [(256, 512), (16, 150), (2, 9), (3, 9), (64, 40), (320, 1000)]
)
@pytest.mark.parametrize("length", [1, 2, 33, 512, 700])
def test_rows_of_the_table_are_those_of_transformers_to_the_bit(
    buckets: int, farthest: int, length: int
) -> None:
    theirs = pytest.importorskip("transformers.models.deberta_v2.modeling_deberta_v2")
    tokens = torch.arange(length)
    bucket_TT = theirs.make_log_bucket_position(tokens[:, None] - tokens, buckets, farthest).long()
    want_TT = (bucket_TT + buckets).clamp(0, 2 * buckets - 1)
    rows_E = distance_rows(replace(BOTH, buckets=buckets, max_distance=farthest), length)
    assert torch.equal(rows_E[length - 1 + tokens[:, None] - tokens], want_TT)


def test_without_buckets_each_distance_has_its_row_up_to_the_farthest() -> None:
    rows_E = distance_rows(replace(BOTH, max_distance=3), 6)
    assert rows_E.tolist() == [0, 0, 0, 1, 2, 3, 4, 5, 5, 5, 5]


@pytest.mark.parametrize("length", [5, 9, 15])
@pytest.mark.parametrize("shared", [True, False])
@pytest.mark.parametrize(("buckets", "farthest"), [(6, 19), (12, 13)])  # of 12, a distance of 8 has row 9
def test_positions_of_each_distance_are_projections_of_its_row(
    odd: Architecture, length: int, shared: bool, buckets: int, farthest: int
) -> None:
    relative = replace(BOTH, buckets=buckets, max_distance=farthest, shared_projections=shared)
    attention = DisentangledAttention(odd, relative).eval()
    assert attention.narrows == (buckets == 6)
    table_PD = torch.randn(2 * buckets, odd.hidden)
    rows_E = distance_rows(relative, length)
    layers = (attention.key, attention.query)
    if not shared:
        layers = attention.position_key, attention.position_query
    for got_NEH, layer in zip(attention.positions(table_PD, length), layers, strict=True):
        assert got_NEH is not None
        want_NEH = layer(table_PD)[rows_E].unflatten(-1, (odd.heads, -1)).transpose(0, 1)
        torch.testing.assert_close(got_NEH, want_NEH)


def test_the_table_is_normalized_only_if_it_is_to_be(odd: Architecture) -> None:
    plain = RelativeTable(odd, BOTH)
    assert plain().data_ptr() == plain.table.weight.data_ptr()
    assert plain().shape == (80, odd.hidden)
    normalized = RelativeTable(odd, replace(BOTH, normalized_table=True))
    torch.testing.assert_close(normalized().mean(-1), torch.zeros(80), atol=1e-6, rtol=0)


def test_in_training_the_positions_have_dropout(odd: Architecture) -> None:
    attention = DisentangledAttention(replace(odd, dropout=0.5), replace(BOTH, shared_projections=True))
    table_PD = torch.randn(80, odd.hidden)
    one, other = (attention.positions(table_PD, 9)[0] for _ in range(2))
    assert one is not None
    assert other is not None
    assert not torch.equal(one, other)
    assert torch.equal(*(attention.eval().positions(table_PD, 9)[0] for _ in range(2)))  # pyright: ignore[reportArgumentType]
