"""Attention by torch's kernel, and with its matrices written out, agrees with the plain equation."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor

from bertcli.model.fast import attention as fast
from bertcli.model.layer import attend
from bertcli.model.seam import plain_path

B, N, T, H = 3, 5, 7, 11
MASK_B11T = (torch.arange(T) < torch.tensor([[T], [1], [4]]))[:, None, None, :]


@pytest.fixture
def heads() -> Tensor:
    torch.manual_seed(0)
    return torch.randn(3, B, N, T, H, requires_grad=True)


def plain(*inputs: Any) -> Tensor:
    with plain_path():
        return attend(*inputs)


def by_torch(*inputs: Any) -> Tensor:
    with plain_path("written_out"):
        return attend(*inputs)


def written_out(*inputs: Any) -> Tensor:
    assert fast.is_written_out(inputs[1])
    return attend(*inputs)


WAYS = pytest.mark.parametrize("way", [by_torch, written_out])
MASKS = pytest.mark.parametrize("mask_B11T", [None, MASK_B11T], ids=["full", "padded"])
Way = Callable[..., Tensor]


@MASKS
@WAYS
@pytest.mark.parametrize("queries", [T, 2])
def test_it_agrees_with_the_equation(heads: Tensor, mask_B11T: Tensor | None, way: Way, queries: int) -> None:
    (query, key, value), weights = heads, torch.randn(B, N, queries, H)
    inputs = query[:, :, :queries], key, value, mask_B11T, 0.0
    got, want = way(*inputs), plain(*inputs)
    torch.testing.assert_close(got, want, rtol=1e-5, atol=1e-6)
    got_grad, want_grad = (torch.autograd.grad((context * weights).sum(), heads) for context in (got, want))
    torch.testing.assert_close(got_grad, want_grad, rtol=1e-5, atol=1e-5)


@MASKS
@WAYS
def test_large_scores_keep_their_differences_in_bf16(
    heads: Tensor, mask_B11T: Tensor | None, way: Way
) -> None:
    """Scores of 30 to 100 as bf16 would be off by up to 0.25, what they weigh by a quarter."""
    heads = heads.detach()[..., :4]  # whose square root is exact
    heads[0], heads[1] = 4 + heads[0], 8 + heads[1] / 4
    heads = heads.bfloat16().requires_grad_()
    want = plain(*heads.float(), mask_B11T, 0.0)
    torch.testing.assert_close(way(*heads, mask_B11T, 0.0).float(), want, rtol=0.01, atol=0.01)


def test_rows_computed_in_turn_are_as_those_computed_at_once(
    heads: Tensor, monkeypatch: pytest.MonkeyPatch
) -> None:
    at_once = written_out(*heads, MASK_B11T, 0.0)
    monkeypatch.setattr(fast, "_AT_ONCE", 2 * N * T * T)
    torch.testing.assert_close(written_out(*heads, MASK_B11T, 0.0), at_once)


@MASKS
@WAYS
def test_its_gradient_is_that_of_what_it_computes_with_dropout(
    heads: Tensor, mask_B11T: Tensor | None, way: Way
) -> None:
    def attend_again(heads: Tensor) -> Tensor:
        torch.manual_seed(5)  # the same elements are dropped each time
        return way(*heads, mask_B11T, 0.4)

    given = heads.detach()[..., :3].double().requires_grad_()
    assert torch.autograd.gradcheck(attend_again, given, fast_mode=True)


def test_it_leaves_its_inputs_as_they_are() -> None:
    heads = torch.randn(3, 1, 1, 1, H, requires_grad=True)  # whose copy changes no order
    before = heads.detach().clone()
    written_out(*heads, None, 0.4).sum().backward()
    assert torch.equal(heads, before)


@WAYS
def test_dropout_falls_on_the_probabilities_and_keeps_their_mean(heads: Tensor, way: Way) -> None:
    torch.manual_seed(0)
    query, key, value = heads
    sums = torch.stack([way(query, key, torch.ones_like(value), None, 0.25).detach() for _ in range(60)])
    assert sums.std() > 0.05
    assert sums.mean().item() == pytest.approx(1.0, abs=0.02)


def test_long_rows_and_evaluation_are_left_to_torch() -> None:
    assert not fast.is_written_out(torch.empty(1, 1, 513, 4))
    assert fast.is_written_out(torch.empty(1, 1, 512, 4))
    with torch.no_grad():
        assert not fast.is_written_out(torch.empty(1, 1, 512, 4))
