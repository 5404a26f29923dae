from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F

from bertcli.model.fast import linear as linear_module
from bertcli.model.fast.linear import linear


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float64])
@pytest.mark.parametrize("rows", [0, 1, 33])
def test_values_and_gradients_are_those_of_torch(dtype, rows):
    torch.manual_seed(0)
    inputs = torch.randn(rows, 20).to(dtype).requires_grad_()
    weight, bias = torch.randn(7, 20, requires_grad=True), torch.randn(7, requires_grad=True)
    outputs = linear(inputs, weight, bias)
    expected = F.linear(inputs.double(), weight.to(dtype).double(), bias.to(dtype).double())
    assert outputs.dtype == dtype
    rtol, atol = (2e-2, 1e-1) if dtype == torch.bfloat16 else (1e-5, 1e-5)
    torch.testing.assert_close(outputs.double(), expected, rtol=rtol, atol=atol)
    weights = torch.randn_like(outputs)
    given = (inputs, weight, bias)
    gradients = torch.autograd.grad((outputs * weights).sum(), given)
    for ours, torchs in zip(
        gradients, torch.autograd.grad((expected * weights.double()).sum(), given), strict=True
    ):
        assert ours.dtype == torchs.dtype
        torch.testing.assert_close(ours, torchs, rtol=rtol, atol=atol)


def test_without_onednn_torch_computes(monkeypatch):
    inputs, weight, bias = torch.randn(3, 4), torch.randn(5, 4), torch.randn(5)
    monkeypatch.setattr(linear_module, "_has_onednn", lambda dtype: False)
    assert torch.equal(linear(inputs, weight, bias), F.linear(inputs, weight, bias))
