"""AdamW (Loshchilov and Hutter 2019) and Muon (Jordan et al. 2024), their state, rates and loss scale."""

from __future__ import annotations

import inspect
import math
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass
from statistics import median
from typing import Any

import torch
from torch import Tensor, nn

from bertcli.config.section import DECAY_SHARE, OptimizerName, Precision, Schedule
from bertcli.model.encoder import BodyModel
from bertcli.system.errors import UserError
from bertcli.training import wrapping


class AdamW(torch.optim.AdamW):
    """torch's AdamW without the decorators that tell torch's compiler to leave its methods alone.

    Nothing is compiled where the loop calls them. But the decorators import the compiler and 700 modules,
    which takes as long as the import of torch.
    """

    step = torch.no_grad()(inspect.unwrap(torch.optim.AdamW.step))
    zero_grad = inspect.unwrap(torch.optim.AdamW.zero_grad)
    add_param_group = inspect.unwrap(torch.optim.AdamW.add_param_group)
    _cuda_graph_capture_health_check = inspect.unwrap(  # private: another version of torch may lack it
        getattr(torch.optim.AdamW, "_cuda_graph_capture_health_check", lambda self: None)
    )


MOMENTUM = 0.95
"""Decay of the moving average of the gradient."""
COEFFICIENTS = (3.4445, -4.7750, 2.0315)
"""Factors of X, (X X^T) X and (X X^T)^2 X, which bring singular values near 1 in fewest iterations (Jordan et
al. 2024)."""
ITERATIONS = 5
"""Newton-Schulz iterations of a step."""
RMS = 0.2
"""Root mean square of an update, in units of the learning rate: that of AdamW's updates, so that rate and
decay mean the same for both (Liu et al. 2025, "Muon is scalable for LLM training", section 2.2)."""


class Muon(AdamW):
    """Muon for the groups with `is_matrix`, AdamW for the others.

    The gradient's moving average, in Nesterov's form, is replaced by the nearest matrix whose singular values
    are all near 1. Rare directions are then learned as fast as frequent ones. The state of a matrix is one
    tensor, `momentum`, in place of AdamW's two.
    """

    products: torch.dtype = torch.float32
    """The dtype in which the nearest matrix is computed. bf16 is exact enough (Jordan et al. 2024)."""

    @torch.no_grad()
    def step(self, closure: Callable[[], float] | None = None) -> None:
        """Move all parameters that have a gradient. `closure` is not called."""
        groups = self.param_groups
        self.param_groups = [group for group in groups if not group["is_matrix"]]
        super().step()
        self.param_groups = groups
        for group in groups:
            if group["is_matrix"]:
                self._move_matrices(group)

    def _move_matrices(self, group: dict[str, Any]) -> None:
        """Move the matrices of a group; all have the same shape, and are computed as one batch."""
        matrices = [matrix for matrix in group["params"] if matrix.grad is not None]
        if not matrices:
            return
        averages = []
        for matrix in matrices:
            if not self.state[matrix]:
                self.state[matrix]["momentum"] = torch.zeros_like(matrix)
            momentum = self.state[matrix]["momentum"]
            momentum.lerp_(matrix.grad, 1 - MOMENTUM)
            averages.append(wrapping.full_tensor(matrix.grad.lerp(momentum, MOMENTUM)))
        updates_NAB = orthogonalize(torch.stack(averages).to(self.products)).to(averages[0])
        length = RMS * max(updates_NAB.shape[1:]) ** 0.5
        for matrix, update_AB in zip(matrices, updates_NAB, strict=True):
            matrix.mul_(1 - group["lr"] * group["weight_decay"])
            matrix.add_(wrapping.shard_like(matrix, update_AB), alpha=-group["lr"] * length)


def orthogonalize(matrices_NAB: Tensor) -> Tensor:
    """The matrices [N, A, B] with all singular values at about 0.7 to 1.2, in the same dtype.

    They are found by Newton-Schulz iterations (Jordan et al. 2024).
    """
    is_tall = matrices_NAB.shape[1] > matrices_NAB.shape[2]
    x = matrices_NAB.mT if is_tall else matrices_NAB
    x = x / x.norm(dim=(1, 2), keepdim=True).clamp_min(1e-7)
    first, third, fifth = COEFFICIENTS
    for _ in range(ITERATIONS):
        gram = x @ x.mT
        x = torch.baddbmm(x, torch.baddbmm(gram, gram, gram, beta=third, alpha=fifth), x, beta=first)
    return x.mT if is_tall else x


def build_optimizer(
    model: nn.Module,
    betas: tuple[float, float],
    weight_decay: float,
    rate_scale: Callable[[str], float] = lambda name: 1.0,
    eps: float = 1e-6,
    kind: OptimizerName = "adamw",
    precision: Precision = "fp32",
) -> AdamW:
    """The optimizer of the model's trainable parameters; AdamW is torch's, in its fused form.

    Vectors (biases, LayerNorm gains and offsets) are not decayed, and epsilon is 1e-6, as in the released
    optimizer of Devlin et al. 2019. The loop sets the learning rate at each step: the rate of the schedule
    times `rate_scale` of the parameter's name. `precision` is that of the run; parameters and state are fp32.
    """
    members: dict[tuple[float, float, torch.Size | None], list[nn.Parameter]] = defaultdict(list)
    for name, parameter in model.named_parameters():
        if parameter.requires_grad:
            decay = weight_decay if parameter.ndim >= 2 else 0.0
            shape = parameter.shape if kind == "muon" and is_matrix(name, parameter) else None
            members[decay, rate_scale(name), shape].append(parameter)
    groups = [
        {"params": some, "weight_decay": decay, "rate_scale": scale, "is_matrix": shape is not None}
        for (decay, scale, shape), some in members.items()
    ]
    optimizer = (Muon if kind == "muon" else AdamW)(groups, lr=0.0, betas=betas, eps=eps, fused=True)
    if isinstance(optimizer, Muon) and precision == "bf16":
        optimizer.products = torch.bfloat16
    return optimizer


def is_matrix(name: str, parameter: Tensor) -> bool:
    """True for the matrices that Muon moves: they lead from hidden values to hidden values, in the layers and
    before the decoder. Each row of an embedding, and of the last layer of a head, is learned by itself
    (Jordan et al. 2024)."""
    is_hidden = ".encoder.layers." in name or name.endswith("mlm_head.dense.weight")
    return is_hidden and parameter.ndim == 2


_BELOW_LAYERS = ("body.embeddings.", "body.encoder.relative.")
"""The parameters below the first layer; DeBERTa's table of distances is read by all layers."""
_BESIDE_FIRST = "body.encoder.convolution."
"""DeBERTa's convolution, whose output is added to that of the first layer."""


def layer_rate_scale(name: str, decay: float, layers: int) -> float:
    """The factor of the learning rate of the parameter with this name (Howard and Ruder 2018, section 3.2).

    Each layer has `decay` times the factor of the layer above. Pooler and head have 1, the top layer has
    `decay`, the embeddings and the table of distances have decay ** (layers + 1).
    """
    if name.startswith(_BELOW_LAYERS):
        return decay ** (layers + 1)
    if name.startswith(_BESIDE_FIRST):
        return decay**layers
    if name.startswith("body.encoder.layers."):
        return decay ** (layers - int(name.split(".")[3]))
    return 1.0


def freeze(model: nn.Module, layers: int) -> None:
    """Exclude the embeddings and the lowest `layers` layers from training; 0 freezes nothing."""
    prefixes = (*_BELOW_LAYERS, _BESIDE_FIRST, *(f"body.encoder.layers.{i}." for i in range(layers)))
    for name, parameter in model.named_parameters():
        if layers and name.startswith(prefixes):
            parameter.requires_grad_(False)


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
    """Restore the state that `optimizer_tensors` returned, bit for bit.

    Raises `UserError` if shapes differ from those of the model; the optimizer itself would not notice.
    """
    for name, parameter in model.named_parameters():
        prefix = f"{name}/"
        state = {key.removeprefix(prefix): value for key, value in tensors.items() if key.startswith(prefix)}
        for key, value in state.items():
            if value.ndim and value.shape != parameter.shape:
                raise UserError(
                    f"cannot resume: the checkpoint's {key} of {name} has the shape {list(value.shape)}, the "
                    f"model's is {list(parameter.shape)}; it belongs to another model or another version of "
                    "bertcli: start a new run in another output_dir"
                )
        if state:  # empty for a parameter that was not trained yet
            optimizer.state[parameter] = {
                key: wrapping.shard_like(parameter, value.to(parameter.device, copy=True))
                for key, value in state.items()
            }


def finetuning_rate(model: BodyModel) -> float:
    """The peak rate for weights that are trained: 3.5e-3 x (median over the layers of the root mean square of
    their matrices) x (256 / hidden) ** 1.5. A BERT-base gets 3e-5, in the range of Devlin et al. 2019,
    appendix A.3.

    AdamW moves each weight by about the rate in a step, so that a step changes large weights by a smaller
    share. Muon leaves matrices two to four times as large as AdamW does. `LOG.md`, 2026-11-28.
    """
    sizes = []
    for layer in model.body.encoder.layers:
        values = torch.cat([each.detach().flatten() for each in layer.parameters() if each.ndim == 2])
        sizes.append(values.square().mean().sqrt().item())
    return float(f"{3.5e-3 * median(sizes) * (256 / model.architecture.hidden) ** 1.5:.1e}")


def learning_rate(
    step: int,
    peak: float,
    warmup_steps: int,
    steps: int,
    schedule: Schedule,
    decay_share: float = DECAY_SHARE,
) -> float:
    """The rate of step `step` (counted from 0) of a run of `steps`.

    The rate rises linearly to `peak` over the first `warmup_steps`. Then it falls to 0 at `steps`, linearly
    or as half a cosine wave, or it stays (Devlin et al. 2019, appendix A.2: linear). With `stable-decay` it
    stays until `decay_begin`, then falls as 1 - sqrt (Hägele et al. 2024, section 4).
    """
    if step < warmup_steps:
        return peak * (step + 1) / warmup_steps
    if schedule == "constant":
        return peak
    if schedule == "stable-decay":
        begin = max(warmup_steps, decay_begin(steps, decay_share))
        return peak if step < begin else peak * (1 - math.sqrt((step - begin) / (steps - begin)))
    left = (steps - step) / max(1, steps - warmup_steps)
    return peak * left if schedule == "linear" else peak * (1 - math.cos(math.pi * left)) / 2


def decay_begin(steps: int, decay_share: float) -> int:
    """The number of steps before the rate falls in `stable-decay`; these are the same in a longer run."""
    return steps - max(1, round(decay_share * steps))


FIRST_FACTOR = 2.0**16
DOUBLE_AFTER = 2000
"""Steps in a row without a skipped one after which the loss scale doubles."""


@dataclass(frozen=True)
class LossScale:
    """The factor for the loss of the next step, and the number of steps in a row with this factor."""

    factor: float = FIRST_FACTOR
    steps: int = 0

    def after(self, skipped: bool) -> LossScale:
        """The scale after a step. `skipped`: the step was skipped."""
        if skipped:
            return LossScale(max(1.0, self.factor / 2))
        if self.steps + 1 == DOUBLE_AFTER:
            return LossScale(2 * self.factor)
        return LossScale(self.factor, self.steps + 1)
