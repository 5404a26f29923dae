"""Disentangled attention in blocks agrees with the plain equation, and keeps one matrix a head."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor

from bertcli.model.disentangled import attend
from bertcli.model.fast import disentangled as fast
from bertcli.model.seam import plain_path

B, N, T, H = 3, 5, 7, 11
MASK_B11T = (torch.arange(T) < torch.tensor([[T], [1], [4]]))[:, None, None, :]
MASKS = pytest.mark.parametrize("mask_B11T", [None, MASK_B11T], ids=["full", "padded"])
TERMS = pytest.mark.parametrize("terms", [(True, True), (True, False), (False, True)])


def inputs(length: int = T, dtype: torch.dtype = torch.float64) -> list[Tensor]:
    """Query, key, value, and the positions of both terms."""
    torch.manual_seed(0)
    heads = torch.randn(3, B, N, length, H, dtype=dtype)
    positions = torch.randn(2, N, 2 * length - 1, H, dtype=dtype)
    return [each.clone().requires_grad_() for each in (*heads, *positions)]


def computed(given: list[Tensor], mask: Tensor | None, terms: tuple[bool, bool]) -> list[Tensor]:
    """The context and all gradients of a function of it."""
    there = [each if is_there else None for each, is_there in zip(given[3:], terms, strict=True)]
    context = attend(*given[:3], *there, mask_B11T=mask, dropout=0.0)
    weights = torch.arange(context.numel(), dtype=context.dtype).view(context.shape).sin()
    wanted = [*given[:3], *(each for each in there if each is not None)]
    return [context, *torch.autograd.grad((context * weights).sum(), wanted)]


def assert_agree(given: list[Tensor], mask: Tensor | None, terms: tuple[bool, bool]) -> None:
    with plain_path():
        want = computed(given, mask, terms)
    torch.testing.assert_close(computed(given, mask, terms), want)


@MASKS
@TERMS
def test_it_agrees_with_the_equation(mask_B11T: Tensor | None, terms: tuple[bool, bool]) -> None:
    assert_agree(inputs(), mask_B11T, terms)


@pytest.mark.parametrize("tile", [1, 2, 3, 7, 100])
@pytest.mark.parametrize("at_once", [1, 2 * T * T, 6 * T * T, 2 * N * T * T, 1 << 20])
def test_blocks_and_tiles_of_any_size_give_the_same(
    tile: int, at_once: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fast, "_TILE", tile)
    monkeypatch.setattr(fast, "_AT_ONCE", at_once)
    assert_agree(inputs(), MASK_B11T, (True, True))


@pytest.mark.parametrize("length", [1, 2, 63, 64, 65, 150])
def test_rows_of_any_length_give_the_same(length: int) -> None:
    assert_agree(inputs(length), None, (True, True))


@MASKS
def test_its_gradient_is_that_of_what_it_computes_with_dropout(mask_B11T: Tensor | None) -> None:
    def attend_again(*given: Tensor) -> Tensor:
        torch.manual_seed(5)  # the same elements are dropped each time
        return attend(*given, mask_B11T=mask_B11T, dropout=0.4)

    given = [each[..., :3].detach().requires_grad_() for each in inputs()]
    assert torch.autograd.gradcheck(attend_again, given, fast_mode=True)


@MASKS
def test_without_gradients_it_gives_the_same_with_the_same_elements_dropped(mask_B11T: Tensor | None) -> None:
    def attend_again() -> Tensor:
        torch.manual_seed(5)
        return attend(*inputs(), mask_B11T=mask_B11T, dropout=0.4)

    kept = attend_again()
    with torch.no_grad():
        again = attend_again()
    assert torch.equal(kept, again)
    assert not torch.equal(again, attend(*inputs(), mask_B11T=mask_B11T, dropout=0.0))


def test_dropout_falls_on_the_probabilities_and_keeps_their_mean() -> None:
    query, key, value, *positions = inputs()
    ones = torch.ones_like(value)
    sums = torch.stack(
        [attend(query, key, ones, *positions, mask_B11T=None, dropout=0.25).detach() for _ in range(60)]
    )
    assert sums.std() > 0.05
    assert sums.mean().item() == pytest.approx(1.0, abs=0.02)


@MASKS
def test_large_scores_keep_their_differences_in_bf16(mask_B11T: Tensor | None) -> None:
    """Scores of 30 to 100 as bf16 would be off by up to 0.25, what they weigh by a quarter."""
    query, key, value, *positions = (each.detach() for each in inputs())
    given = [each.bfloat16() for each in (4 + query, 8 + key / 4, value, *(2 + each for each in positions))]
    want = attend(*(each.float() for each in given), mask_B11T=mask_B11T, dropout=0.0)
    torch.testing.assert_close(
        attend(*given, mask_B11T=mask_B11T, dropout=0.0).float(), want, rtol=0.01, atol=0.01
    )


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("length", [1, T])
def test_no_value_and_no_gradient_is_nan(dtype: torch.dtype, length: int) -> None:
    given = [(30 * each.detach()).to(dtype).requires_grad_() for each in inputs(length)]
    with torch.autocast("cpu", torch.bfloat16, enabled=dtype == torch.bfloat16):
        context = attend(*given, mask_B11T=MASK_B11T[..., :length], dropout=0.3)
    gradients = torch.autograd.grad(context.float().square().sum(), given)
    assert all(each.isfinite().all() for each in (context, *gradients))
    assert all(each.dtype == dtype for each in gradients)


def test_autocast_does_not_narrow_the_scores() -> None:
    query, key, value, position_key, position_query = (each.detach().float() for each in inputs())
    want = attend(query, key, value, position_key, position_query, mask_B11T=None, dropout=0.0)
    batch = fast._Inputs(query, key, value, position_key.flip(1), position_query)
    with torch.autocast("cpu", torch.bfloat16):
        probabilities_nrTT = fast._probabilities(batch.block(slice(1), slice(N)), None)
    torch.testing.assert_close(probabilities_nrTT.transpose(0, 1) @ value[:1], want[:1])


def test_of_each_head_one_matrix_is_kept() -> None:
    given, kept = inputs(100), {}

    def pack(tensor: Tensor) -> Any:
        kept[tensor.untyped_storage().data_ptr()] = tensor.untyped_storage().nbytes()
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
        attend(*given, mask_B11T=None, dropout=0.1)
    sizes = [each.numel() * 8 for each in given]
    assert sum(kept.values()) == sum(sizes) + B * N * 100 * 100 * 8
