"""Rows in groups of like length: the same attention, over fewer scores."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from bertcli.model import row_groups
from bertcli.model.architecture import Architecture
from bertcli.model.bert import Bert
from bertcli.model.row_groups import group_rows

lengths = st.lists(st.integers(1, 9), min_size=1, max_size=8)


def mask_of(lengths: list[int]) -> Tensor:
    return torch.arange(max(lengths)) < torch.tensor(lengths)[:, None]


def sizes_of(lengths: list[int], num_heads: int) -> list[tuple[int, int]]:
    """Rows and longest row of each group."""
    return [
        (group.layout.shape[0], group.layout.shape[2]) for group in group_rows(mask_of(lengths), num_heads)
    ]


@given(lengths)
def test_every_row_is_in_one_group_as_long_as_its_longest_row(lengths: list[int]) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(row_groups, "WORTH_A_GROUP", 1)
        groups = group_rows(mask_of(lengths), num_heads=2)
    remaining = list(lengths)
    for group in groups:
        rows, heads, longest = group.layout.shape
        own, remaining = remaining[:rows], remaining[rows:]
        assert (max(own), sum(own), heads) == (longest, group.num_tokens, 2)
        if group.mask_B11T is None:
            assert set(own) == {longest}
        else:
            assert torch.equal(group.mask_B11T[:, 0, 0], mask_of(own))
    assert not remaining


def test_it_is_cut_where_most_is_spared() -> None:
    assert sizes_of([100] * 3 + [20] * 5, num_heads=12) == [(3, 100), (5, 20)]
    assert sizes_of([100] * 3 + [60] * 4 + [20] * 5, num_heads=12) == [(3, 100), (4, 60), (5, 20)]
    assert sizes_of([20] * 5 + [100] * 3, num_heads=12) == [(5, 20), (3, 100)]


@pytest.mark.parametrize("lengths", [[100] * 8, [20, 19, 18, 10, 5], [500]], ids=str)
def test_what_spares_little_stays_together(lengths: list[int]) -> None:
    assert sizes_of(lengths, num_heads=12) == [(len(lengths), max(lengths))]


@given(lengths)
def test_in_groups_a_model_gives_what_it_gives_without_with_the_same_gradients(lengths: list[int]) -> None:
    torch.manual_seed(0)
    sizes = Architecture(30, 16, 2, 2, 32, 48, dropout=0.0, attention_dropout=0.0)
    bert, mask_BT = Bert(sizes).double(), mask_of(lengths)
    ids_BT = torch.randint(0, 30, mask_BT.shape)
    results = []
    for worth in (1, 10**9):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(row_groups, "WORTH_A_GROUP", worth)
            hidden_RD = bert(ids_BT, torch.zeros_like(ids_BT), mask_BT)[mask_BT]
        gradients = torch.autograd.grad(hidden_RD.square().sum(), list(bert.parameters()))
        results.append((hidden_RD, *gradients))
    torch.testing.assert_close(*results)
