"""Integrated gradients (Sundararajan, Taly and Yan 2017): what each input adds to one number of a model."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from bertcli.inference.rows import only_numbers

TOLERANCE = 0.01
"""The completeness error that is accepted, as a share of the sum of all absolute scores."""
MOST_STEPS = 1024
TOKENS_AT_ONCE = 1024
"""In one backward pass: its memory grows with them."""


@dataclass(frozen=True)
class Integral:
    """The scores of T tokens along the straight path from a baseline to the input.

    Attributes:
        scores_T: float32 on the CPU; their sum is that of `value - baseline`, but for `error`.
        value: of the function at the input.
        baseline: of the function at the baseline.
        steps: points of the path at which the gradient was taken.
    """

    scores_T: Tensor
    value: float
    baseline: float
    steps: int

    @property
    def error(self) -> float:
        """The completeness error (section 3 of the paper): the sum of the scores minus what it should be."""
        return float(self.scores_T.sum()) - (self.value - self.baseline)

    @property
    def is_complete(self) -> bool:
        """Whether the error is within `TOLERANCE`."""
        return abs(self.error) <= TOLERANCE * float(self.scores_T.abs().sum())


def integrate(
    function: Callable[[Tensor], Tensor], input_TE: Tensor, baseline_TE: Tensor, steps: int
) -> Integral:
    """The integrated gradients of a differentiable `function`, [B, T, E] -> [B], for each token.

    Gauss-Legendre quadrature: of smooth functions it needs far fewer points than a sum of equal steps. The
    number of points is doubled until the integral is complete, at most to `MOST_STEPS`.
    """
    with torch.no_grad():
        value, baseline = only_numbers(function(torch.stack([input_TE, baseline_TE]))).tolist()
    while True:
        gradient_TE = _mean_gradient(function, input_TE, baseline_TE, steps=steps)
        scores_T = (gradient_TE * (input_TE - baseline_TE)).sum(dim=-1).cpu()
        integral = Integral(scores_T, value, baseline, steps=steps)
        if integral.is_complete or 2 * steps > MOST_STEPS:
            return integral
        steps *= 2


def _mean_gradient(
    function: Callable[[Tensor], Tensor], input_TE: Tensor, baseline_TE: Tensor, steps: int
) -> Tensor:
    """The gradient's mean over the path, [T, E]."""
    points, weights = np.polynomial.legendre.leggauss(steps)
    shares_S = torch.from_numpy((points + 1) / 2).to(input_TE)  # from [-1, 1] to [0, 1]
    weights_S = torch.from_numpy(weights / 2).to(input_TE)
    rows = max(1, TOKENS_AT_ONCE // len(input_TE))
    total_TE = torch.zeros_like(input_TE)
    for shares_B, weights_B in zip(shares_S.split(rows), weights_S.split(rows), strict=True):
        path_BTE = torch.lerp(baseline_TE, input_TE, shares_B[:, None, None]).detach().requires_grad_()
        (gradient_BTE,) = torch.autograd.grad(function(path_BTE).sum(), path_BTE)
        total_TE += torch.einsum("b,bte->te", weights_B, gradient_BTE)
    return total_TE
