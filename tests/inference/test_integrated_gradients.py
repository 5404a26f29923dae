"""The integral of a gradient: exact where it is known by hand, complete, and honest where it is not."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from bertcli.inference import attributions as integrated_gradients
from bertcli.inference.attributions import TOLERANCE, integrate

torch.manual_seed(3)
WEIGHT_TE = torch.randn(5, 4)
INPUT_TE, BASELINE_TE = torch.randn(5, 4), torch.randn(5, 4)


def linear(vectors_BTE: Tensor) -> Tensor:
    return (vectors_BTE * WEIGHT_TE).sum(dim=(1, 2)) + 7


def test_of_a_linear_function_the_scores_are_its_weights():
    found = integrate(linear, INPUT_TE, BASELINE_TE, steps=1)
    torch.testing.assert_close(found.scores_T, (WEIGHT_TE * (INPUT_TE - BASELINE_TE)).sum(dim=-1))
    assert found.steps == 1
    assert abs(found.error) < 1e-5


def test_the_other_sign_of_the_function_is_the_other_sign_of_the_scores():
    there = integrate(linear, INPUT_TE, BASELINE_TE, steps=2)
    back = integrate(lambda vectors: -linear(vectors), INPUT_TE, BASELINE_TE, steps=2)
    torch.testing.assert_close(there.scores_T, -back.scores_T)
    assert (there.value, there.baseline) == (-back.value, -back.baseline)


def test_of_a_product_both_factors_have_half():
    """x y from (0, 0) to (a, b): the integral over t of b t * a is a b / 2 for each."""
    both = integrate(
        lambda vectors: vectors.prod(dim=1)[:, 0], torch.tensor([[3.0], [5.0]]), torch.zeros(2, 1), steps=1
    )
    torch.testing.assert_close(both.scores_T, torch.tensor([7.5, 7.5]))


@pytest.mark.parametrize("function", [torch.tanh, torch.exp, lambda x: torch.sigmoid(20 * x)])
def test_steps_are_added_until_the_scores_sum_to_the_difference(function: Callable[[Tensor], Tensor]):
    found = integrate(lambda vectors: function(linear(vectors) / 5), INPUT_TE, BASELINE_TE, steps=1)
    assert found.is_complete
    assert found.scores_T.sum() == pytest.approx(
        found.value - found.baseline, abs=TOLERANCE * float(found.scores_T.abs().sum())
    )


def test_a_jump_is_never_complete_and_this_is_said(monkeypatch: pytest.MonkeyPatch):
    """The gradient of a step is 0 on both sides, so no number of points finds what it adds."""
    monkeypatch.setattr(integrated_gradients, "MOST_STEPS", 8)
    step = lambda vectors: (linear(vectors) > 7).float() + 1e-3 * linear(vectors)  # noqa: E731
    found = integrate(step, 9 * WEIGHT_TE, -9 * WEIGHT_TE, steps=2)
    assert (found.steps, found.is_complete) == (8, False)
    assert found.error == pytest.approx(-1, abs=1e-3)


def test_many_points_are_taken_in_parts(monkeypatch: pytest.MonkeyPatch):
    curve = lambda vectors: torch.tanh(linear(vectors) / 5)  # noqa: E731
    whole = integrate(curve, INPUT_TE, BASELINE_TE, steps=64)
    monkeypatch.setattr(integrated_gradients, "TOKENS_AT_ONCE", 15)
    torch.testing.assert_close(integrate(curve, INPUT_TE, BASELINE_TE, steps=64).scores_T, whole.scores_T)
