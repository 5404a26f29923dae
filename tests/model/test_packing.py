"""Packed, a batch gives what it gives with its padding, forward and backward."""

from __future__ import annotations

import torch
from hypothesis import given
from hypothesis import strategies as st

from bertcli.model.architecture import Architecture
from bertcli.model.bert import Bert
from bertcli.model.packing import Packing, round_up


@given(st.integers(0, 1 << 40))
def test_few_sizes_are_computed_and_none_much_larger_than_asked_for(number: int) -> None:
    size = round_up(number)
    assert number <= size <= number * (1 + 1 / 16)
    assert round_up(size) == size
    assert len(f"{size:b}".rstrip("0")) <= 5


CPU = torch.device("cpu")
lengths = st.lists(st.integers(1, 9), min_size=1, max_size=6)


def mask_of(lengths: list[int]) -> torch.Tensor:
    return torch.arange(max(lengths)) < torch.tensor(lengths)[:, None]


@given(lengths)
def test_packing_keeps_the_real_tokens_in_order_and_unpacking_puts_them_back(lengths: list[int]) -> None:
    mask_BT = mask_of(lengths)
    packing = Packing.of(mask_BT, (mask_BT.shape[0], mask_BT.shape[1]), CPU)
    values_BTD = torch.randn(*mask_BT.shape, 3, dtype=torch.float64)
    packed_RD = packing.pack(values_BTD)
    assert len(packed_RD) <= min(mask_BT.numel(), round_up(sum(lengths)))
    assert torch.equal(packed_RD[: sum(lengths)], values_BTD[mask_BT])
    assert torch.equal(packing.unpack(packed_RD)[mask_BT], values_BTD[mask_BT])


@given(lengths)
def test_real_tokens_are_found_among_the_packed(lengths: list[int]) -> None:
    mask_BT = mask_of(lengths)
    packing = Packing.of(mask_BT, (mask_BT.shape[0], mask_BT.shape[1]), CPU)
    values_BTD = torch.randn(*mask_BT.shape, 3)
    wanted_K = mask_BT.flatten().nonzero().squeeze(1).flip(0)
    assert torch.equal(
        packing.pack(values_BTD)[packing.want(wanted_K).numbers_K], values_BTD.flatten(0, 1)[wanted_K]
    )


@given(lengths)
def test_gradients_flow_through_both(lengths: list[int]) -> None:
    mask_BT = mask_of(lengths)
    packing = Packing.of(mask_BT, (mask_BT.shape[0], mask_BT.shape[1]), CPU)
    values_BTD = torch.randn(*mask_BT.shape, 3, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(packing.pack, values_BTD)
    packed_RD = packing.pack(values_BTD).detach().requires_grad_()
    assert torch.autograd.gradcheck(packing.unpack, packed_RD)


@given(lengths)
def test_each_row_is_computed_as_if_it_were_alone(lengths: list[int]) -> None:
    torch.manual_seed(0)
    bert = Bert(Architecture(30, 16, 2, 4, 32, 16, dropout=0.0, attention_dropout=0.0)).double()
    mask_BT = mask_of(lengths)
    ids_BT = torch.randint(0, 30, mask_BT.shape)
    together_BTD = bert(ids_BT, torch.zeros_like(ids_BT), mask_BT)
    for row, length in enumerate(lengths):
        ids_1T = ids_BT[row : row + 1, :length]
        alone_1TD = bert(ids_1T, torch.zeros_like(ids_1T))
        torch.testing.assert_close(together_BTD[row, :length], alone_1TD[0])
