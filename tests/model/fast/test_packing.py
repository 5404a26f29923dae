"""Packed, a batch gives what it gives with its padding, forward and backward."""

from __future__ import annotations

import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from bertcli.model.architecture import Architecture
from bertcli.model.encoder import Body
from bertcli.model.fast.packing import Packing, pack_rows, round_up, side_by_side


@given(st.integers(0, 1 << 40))
def test_few_sizes_are_computed_and_none_much_larger_than_asked_for(number: int) -> None:
    size = round_up(number)
    assert number <= size <= number * (1 + 1 / 16)
    assert round_up(size) == size
    assert len(f"{size:b}".rstrip("0")) <= 5


lengths = st.lists(st.integers(1, 9), min_size=1, max_size=6)


def packed(lengths: list[int]) -> tuple[Packing, Tensor, Tensor]:
    """With the mask_BT that it is of, and values_BTD."""
    mask_BT = torch.arange(max(lengths)) < torch.tensor(lengths)[:, None]
    values_BTD = torch.randn(*mask_BT.shape, 3, dtype=torch.float64, requires_grad=True)
    return pack_rows(values_BTD, mask_BT, None), mask_BT, values_BTD


@given(lengths)
def test_packing_keeps_the_real_tokens_in_order_and_unpacking_puts_them_back(lengths: list[int]) -> None:
    packing, mask_BT, values_BTD = packed(lengths)
    packed_RD = packing.pack(values_BTD)
    assert len(packed_RD) <= min(mask_BT.numel(), round_up(sum(lengths)))
    assert torch.equal(packed_RD[: sum(lengths)], values_BTD[mask_BT])
    assert torch.equal(packing.unpack(packed_RD)[mask_BT], values_BTD[mask_BT])


@given(lengths)
def test_real_tokens_are_found_among_the_packed(lengths: list[int]) -> None:
    packing, mask_BT, values_BTD = packed(lengths)
    places_K = mask_BT.flatten().nonzero().squeeze(1).flip(0)
    assert torch.equal(packing.pack(values_BTD)[packing.find(places_K)], values_BTD.flatten(0, 1)[places_K])


@given(lengths)
def test_gradients_flow_through_both(lengths: list[int]) -> None:
    packing, _, values_BTD = packed(lengths)
    assert torch.autograd.gradcheck(packing.pack, values_BTD, fast_mode=True)
    packed_RD = packing.pack(values_BTD).detach().requires_grad_()
    assert torch.autograd.gradcheck(packing.unpack, packed_RD, fast_mode=True)


@given(st.lists(st.integers(0, 4), min_size=1, max_size=9))
def test_tokens_side_by_side_keep_their_order_in_each_row(rows: list[int]) -> None:
    packing = side_by_side(torch.tensor(rows), num_rows=5)
    most = max(rows.count(row) for row in rows)
    numbers_BW = packing.unpack(torch.arange(1.0, len(rows) + 1)[:, None])[..., 0]
    assert packing.shape == (5, most)
    for row in range(5):
        own = [number for number, of in enumerate(rows, 1) if of == row]
        assert numbers_BW[row].tolist() == own + [0] * (most - len(own))


def test_on_a_gpu_every_place_is_kept() -> None:
    """Of sizes alone: the meta device computes nothing."""
    values_BTD = torch.empty(2, 5, 3, device="meta")
    packing = pack_rows(values_BTD, torch.ones(2, 5, dtype=torch.bool).tril(), None)
    assert packing.pack(values_BTD).shape == (10, 3)
    assert packing.mask_B11T is not None
    assert (packing.mask_B11T.device.type, packing.mask_B11T.shape) == ("meta", (2, 1, 1, 5))


@given(lengths)
def test_each_row_is_computed_as_if_it_were_alone(lengths: list[int]) -> None:
    torch.manual_seed(0)
    body = Body(Architecture(30, 16, 2, 4, 32, 16, dropout=0.0, attention_dropout=0.0)).double()
    _, mask_BT, _ = packed(lengths)
    ids_BT = torch.randint(0, 30, mask_BT.shape)
    together_BTD = body(ids_BT, torch.zeros_like(ids_BT), mask_BT)
    for row, length in enumerate(lengths):
        ids_1T = ids_BT[row : row + 1, :length]
        alone_1TD = body(ids_1T, torch.zeros_like(ids_1T))
        torch.testing.assert_close(together_BTD[row, :length], alone_1TD[0])
