from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn

from bertcli.model.encoder import drop_add_norm
from bertcli.model.fast.dropout import draw
from bertcli.model.fast.switch import plain_path


def test_the_gradients_are_those_of_what_is_computed() -> None:
    torch.manual_seed(0)
    norm = nn.LayerNorm(5).double()
    nn.init.normal_(norm.weight)
    nn.init.normal_(norm.bias)
    values, residual = torch.randn(2, 6, 5, dtype=torch.double).requires_grad_()

    def again(values: Tensor, residual: Tensor, *_: Tensor) -> Tensor:
        torch.manual_seed(2)  # the same elements are dropped each time
        return drop_add_norm(values, residual, norm, 0.4)

    assert torch.autograd.gradcheck(again, (values, residual, norm.weight, norm.bias))


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_what_is_kept_is_added_and_normalized(dtype: torch.dtype) -> None:
    values, residual = torch.randn(2, 6, 50).to(dtype)
    norm = nn.LayerNorm(50)
    torch.manual_seed(2)
    result = drop_add_norm(values, residual, norm, 0.4)
    torch.manual_seed(2)
    kept, scale = draw(values, 0.4)
    with plain_path():
        expected = drop_add_norm(values.float() * kept * scale, residual.float(), norm, 0.0)
    assert result.dtype == dtype
    tolerance = {"rtol": 2e-2, "atol": 3e-2} if dtype != torch.float32 else {"rtol": 1e-5, "atol": 1e-5}
    torch.testing.assert_close(result.float(), expected, **tolerance)
