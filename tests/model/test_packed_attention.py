"""Attention over packed rows, which only GPUs have a kernel for: what it is given, and what comes back."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from bertcli.model import attention, encoder
from bertcli.model.architecture import Architecture
from bertcli.model.attention import attend_packed, attend_reference, reads_packed
from bertcli.model.bert import Bert
from bertcli.model.packing import Packing

CPU = torch.device("cpu")
SIZES = Architecture(30, 16, 2, 2, 32, 48, dropout=0.0, attention_dropout=0.0)
ragged = st.lists(st.integers(1, 40), min_size=1, max_size=8)


def mask_of(lengths: list[int]) -> Tensor:
    return torch.arange(max(lengths)) < torch.tensor(lengths)[:, None]


def packed_reference(heads_3RNH: Tensor, starts_S: Tensor, longest: int, dropout: float) -> Tensor:
    """What the kernel computes, row by row."""
    contexts = []
    for start, end in pairwise(starts_S.tolist()):
        assert 0 <= end - start <= longest
        heads_31NTH = heads_3RNH[:, start:end].transpose(1, 2)[:, None]
        contexts.append(attend_reference(heads_31NTH, None, dropout)[0][0].transpose(0, 1))
    return torch.cat(contexts)


@given(ragged)
def test_every_packed_token_is_in_one_row_and_real_rows_come_first(lengths: list[int]) -> None:
    mask_BT = mask_of(lengths)
    packing = Packing.of(mask_BT, (mask_BT.shape[0], mask_BT.shape[1]), CPU, keep_packed=True)
    assert packing.starts_S is not None
    assert packing.places_R is not None
    starts = packing.starts_S.tolist()
    assert packing.starts_S.dtype == torch.int32
    assert [end - start for start, end in pairwise(starts)][: len(lengths)] == lengths
    assert (starts[0], starts[-1]) == (0, len(packing.places_R))
    assert all(0 <= end - start <= max(lengths) for start, end in pairwise(starts))


@given(ragged)
def test_of_a_mask_that_nobody_looks_at_padding_is_computed_along(lengths: list[int]) -> None:
    torch.manual_seed(0)
    mask_BT = mask_of(lengths)
    heads_3BNTH = torch.randn(3, *mask_BT.shape, 2, 8).transpose(2, 3)
    expected_BTNH = attend_reference(heads_3BNTH, mask_BT[:, None, None, :], 0.0)[0].transpose(1, 2)

    packing = Packing.unread(mask_BT, keep_packed=True)
    assert packing.starts_S is not None
    assert packing.starts_S.dtype == torch.int32
    assert len(packing.starts_S) == 2 * len(lengths) + 1  # whatever the lengths are
    heads_3RNH = heads_3BNTH.transpose(2, 3).flatten(1, 2)
    context_RNH = packed_reference(heads_3RNH, packing.starts_S, mask_BT.shape[1], 0.0)
    torch.testing.assert_close(context_RNH.unflatten(0, mask_BT.shape)[mask_BT], expected_BTNH[mask_BT])

    mask_B11T = Packing.unread(mask_BT, keep_packed=False).mask_B11T
    assert mask_B11T is not None
    assert torch.equal(mask_B11T[:, 0, 0], mask_BT)


@given(ragged)
def test_packed_it_gives_what_padded_rows_give(lengths: list[int]) -> None:
    torch.manual_seed(0)
    bert, mask_BT = Bert(SIZES).double(), mask_of(lengths)
    ids_BT = torch.randint(0, 30, mask_BT.shape)
    padded_BTD = bert(ids_BT, torch.zeros_like(ids_BT), mask_BT)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(encoder, "reads_packed", lambda hidden, head_size: True)
        patch.setattr(attention, "attend_packed", packed_reference)
        packed_BTD = bert(ids_BT, torch.zeros_like(ids_BT), mask_BT)
    torch.testing.assert_close(packed_BTD[mask_BT], padded_BTD[mask_BT])


def test_the_kernel_takes_what_it_is_given_and_has_a_gradient() -> None:
    """Of sizes alone: the meta device computes nothing."""
    heads_3RNH = torch.empty(3, 64, 4, 32, dtype=torch.bfloat16, device="meta", requires_grad=True)
    starts_S = torch.empty(9, dtype=torch.int32, device="meta")
    context_RNH = attend_packed(heads_3RNH, starts_S, longest=16, dropout=0.1)
    assert (context_RNH.shape, context_RNH.dtype) == ((64, 4, 32), torch.bfloat16)
    context_RNH.sum().backward()
    assert heads_3RNH.grad is not None
    assert heads_3RNH.grad.shape == heads_3RNH.shape


def test_a_cpu_has_no_such_kernel() -> None:
    assert not reads_packed(torch.empty(1, dtype=torch.bfloat16), 64)


@pytest.mark.cuda
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
@pytest.mark.parametrize("lengths", [[40, 3, 17, 1], [5] * 7, [40]])
def test_on_a_gpu_the_kernel_gives_what_the_reference_gives(lengths: list[int]) -> None:
    torch.manual_seed(0)
    mask_BT, gpu = mask_of(lengths), torch.device("cuda")
    packing = Packing.of(mask_BT, (mask_BT.shape[0], mask_BT.shape[1]), gpu, keep_packed=True)
    assert packing.places_R is not None
    assert packing.starts_S is not None
    heads_3RNH = torch.randn(3, len(packing.places_R), 4, 64, device=gpu)
    gradient_RNH = torch.randn_like(heads_3RNH[0])
    results: list[Any] = []
    for function, dtype in ((attend_packed, torch.bfloat16), (packed_reference, torch.float32)):
        given = heads_3RNH.to(dtype).requires_grad_()
        context_RNH = function(given, packing.starts_S, max(lengths), 0.0)
        context_RNH.backward(gradient_RNH.to(dtype))
        assert given.grad is not None
        results.append((context_RNH.float(), given.grad.float()))
    for ours, exact in zip(*results, strict=True):
        torch.testing.assert_close(ours, exact, rtol=0.02, atol=0.02)
