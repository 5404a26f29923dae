"""Plain attention is the paper's equation."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from bertcli.model.layer import attend, attention_probabilities
from bertcli.model.seam import plain_path

B, N, T, H = 3, 5, 7, 11


@pytest.fixture
def heads() -> Tensor:
    torch.manual_seed(0)
    return torch.randn(3, B, N, T, H, dtype=torch.float64)


def test_it_is_the_papers_equation_token_by_token(heads: Tensor) -> None:
    query, key, value = heads
    with plain_path():
        context = attend(query, key, value, None, 0.0)
    b, n, t = 2, 3, 4
    scores = torch.stack([query[b, n, t] @ key[b, n, other] for other in range(T)]) / 11**0.5
    weights = scores.exp() / scores.exp().sum()
    torch.testing.assert_close(attention_probabilities(query, key, None)[b, n, t], weights)
    expected = torch.stack([weights[other] * value[b, n, other] for other in range(T)]).sum(0)
    torch.testing.assert_close(context[b, n, t], expected)


def test_nothing_looks_at_padding(heads: Tensor) -> None:
    mask_B11T = (torch.arange(T) < torch.tensor([[T], [1], [4]]))[:, None, None, :]
    probabilities = attention_probabilities(heads[0], heads[1], mask_B11T)
    assert (probabilities.masked_select(~mask_B11T) == 0).all()
    torch.testing.assert_close(probabilities.sum(-1), torch.ones(B, N, T, dtype=torch.float64))


def test_dropout_falls_on_the_probabilities_and_keeps_their_mean(heads: Tensor) -> None:
    torch.manual_seed(0)
    ones = torch.ones_like(heads[2])
    with plain_path():
        sums = torch.stack([attend(heads[0], heads[1], ones, None, 0.25) for _ in range(60)])
    assert sums.std() > 0.05
    assert sums.mean().item() == pytest.approx(1.0, abs=0.02)
