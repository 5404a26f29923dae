"""AdamW with decoupled weight decay (Loshchilov and Hutter 2019), and its state by parameter name."""

from __future__ import annotations

import torch
from torch import Tensor, nn


def build_optimizer(
    model: nn.Module, betas: tuple[float, float], weight_decay: float, eps: float = 1e-6
) -> torch.optim.AdamW:
    """AdamW over the model's parameters, in torch's fused form.

    Vectors (biases, LayerNorm gains and offsets) are not decayed: Devlin et al. 2019's released optimizer,
    whose epsilon of 1e-6 is kept as well. The loop sets the learning rate at each step.
    """
    parameters = [parameter for parameter in model.parameters() if parameter.requires_grad]
    groups = [
        {"params": [p for p in parameters if p.ndim >= 2], "weight_decay": weight_decay},
        {"params": [p for p in parameters if p.ndim < 2], "weight_decay": 0.0},
    ]
    return torch.optim.AdamW(groups, lr=0.0, betas=betas, eps=eps, fused=True)


def optimizer_tensors(model: nn.Module, optimizer: torch.optim.Optimizer) -> dict[str, Tensor]:
    """The optimizer's state as `<parameter name>/<state name>` -> tensor; empty before the first step."""
    return {
        f"{name}/{key}": value
        for name, parameter in model.named_parameters()
        for key, value in optimizer.state.get(parameter, {}).items()
    }


def load_optimizer_tensors(
    model: nn.Module, optimizer: torch.optim.Optimizer, tensors: dict[str, Tensor]
) -> None:
    """Put back what `optimizer_tensors` gave, bit for bit."""
    for name, parameter in model.named_parameters():
        prefix = f"{name}/"
        state = {key.removeprefix(prefix): value for key, value in tensors.items() if key.startswith(prefix)}
        if state:  # none for a parameter that no step has touched yet
            optimizer.state[parameter] = {
                key: value.to(parameter.device, copy=True) for key, value in state.items()
            }
