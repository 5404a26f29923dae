"""Local attention in blocks against the plain path, and rows in which a window sees padding alone."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from bertcli.model.fast import attention as fast
from bertcli.model.rotary import attend_window, rotate
from bertcli.model.seam import plain_path


def heads(batch: int, length: int) -> list[Tensor]:
    """Queries, keys and values [B, 2, T, 4] in double precision."""
    return [torch.randn(batch, 2, length, 4, dtype=torch.float64, requires_grad=True) for _ in range(3)]


def results(inputs: list[Tensor], mask_BT: Tensor | None, window: int) -> list[Tensor]:
    """Context at real tokens, and the gradients of its sum of squares."""
    mask_B11T = None if mask_BT is None else mask_BT[:, None, None]
    context_BNTH = attend_window(*inputs, mask_B11T=mask_B11T, window=window, dropout=0.0)
    context_BTNH = context_BNTH.transpose(1, 2)
    real = context_BTNH if mask_BT is None else context_BTNH[mask_BT]
    return [real.detach(), *torch.autograd.grad(real.square().sum(), inputs)]


@given(
    lengths=st.lists(st.integers(1, 30), min_size=1, max_size=4),
    window=st.integers(1, 6),
    seed=st.integers(0, 99),
)
def test_blocks_give_what_the_full_matrix_gives(lengths: list[int], window: int, seed: int) -> None:
    torch.manual_seed(seed)
    inputs = heads(len(lengths), max(lengths))
    mask_BT = torch.arange(max(lengths)) < torch.tensor(lengths)[:, None]
    got = results(inputs, mask_BT, window)
    with plain_path():
        want = results(inputs, mask_BT, window)
    for one, other in zip(got, want, strict=True):
        torch.testing.assert_close(one, other)
        assert one.isfinite().all()


def test_long_rows_never_have_a_full_matrix(monkeypatch: pytest.MonkeyPatch) -> None:
    seen = []
    attend = fast.attend

    def recorded(query: Tensor, key: Tensor, *others: Any, **named: Any) -> Tensor:
        seen.append((query.shape, key.shape))
        return attend(query, key, *others, **named)

    monkeypatch.setattr(fast, "attend", recorded)
    results(heads(2, 33), None, window=4)
    results(heads(2, 16), None, window=4)
    assert seen == [((2 * 5, 2, 8, 4), (2 * 5, 2, 16, 4))]  # 33 tokens: 5 blocks; 16 are not more than one


def test_a_score_depends_on_the_distance_alone() -> None:
    torch.manual_seed(0)
    query_H, key_H = torch.randn(2, 8, dtype=torch.float64).float()
    query_TH, key_TH = (rotate(each.repeat(1, 1, 50, 1), 10_000.0)[0, 0] for each in (query_H, key_H))
    scores_TT = query_TH @ key_TH.mT
    for distance in (0, 1, 7, 30):
        of_distance = scores_TT.diagonal(distance)
        torch.testing.assert_close(of_distance, of_distance[:1].expand_as(of_distance), rtol=0, atol=1e-5)
    assert abs(float(scores_TT[0, 1] - scores_TT[0, 7])) > 1e-3
