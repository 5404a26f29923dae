"""Dense layers by oneDNN, with the bias inside: replaces `nn.Linear.forward` and `F.linear` on a CPU."""

from __future__ import annotations

from functools import cache
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from bertcli.model.fast.switch import is_on_cpu


class Linear(nn.Linear):
    """torch's own, computed by `linear`."""

    def forward(self, inputs_RI: Tensor) -> Tensor:
        """[..., I] -> [..., O]."""
        return linear(inputs_RI, self.weight, self.bias)


def linear(inputs_RI: Tensor, weight_OI: Tensor, bias_O: Tensor) -> Tensor:
    """x W^T + b: [..., I] -> [..., O], in the inputs' dtype."""
    weight_OI, bias_O = weight_OI.to(inputs_RI.dtype), bias_O.to(inputs_RI.dtype)
    if inputs_RI.ndim == 2 and is_on_cpu("linear", inputs_RI) and _has_onednn(inputs_RI.dtype):
        return _Linear.apply(inputs_RI, weight_OI, bias_O)  # pyright: ignore[reportReturnType]
    return F.linear(inputs_RI, weight_OI, bias_O)


@cache
def _has_onednn(dtype: torch.dtype) -> bool:
    if not torch.backends.mkldnn.is_available():
        return False
    return dtype == torch.float32 or (
        dtype == torch.bfloat16 and torch.ops.mkldnn._is_mkldnn_bf16_supported()
    )


class _Linear(torch.autograd.Function):
    """torch's own spends a pass on writing the bias out for every row, and a slow one on its gradient."""

    @staticmethod
    def forward(ctx: Any, inputs_RI: Tensor, weight_OI: Tensor, bias_O: Tensor) -> Tensor:
        ctx.save_for_backward(inputs_RI, weight_OI)
        return torch.ops.mkldnn._linear_pointwise(inputs_RI, weight_OI, bias_O, "none", [], "")

    @staticmethod
    def backward(ctx: Any, gradient_RO: Tensor) -> tuple[Tensor, Tensor, Tensor]:  # pyright: ignore[reportIncompatibleMethodOverride]
        inputs_RI, weight_OI = ctx.saved_tensors
        ones_1R = gradient_RO.new_ones(1, len(gradient_RO))
        return gradient_RO @ weight_OI, gradient_RO.mT @ inputs_RI, (ones_1R @ gradient_RO)[0]
