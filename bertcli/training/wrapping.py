"""Models over the ranks of a run: a copy on each (DDP) or a part of every layer (FSDP); compiled layers."""

import re
from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext
from typing import Any, Literal, cast

import torch
from torch import Tensor, nn

from bertcli.model.architecture import Architecture, training_flops
from bertcli.model.encoder import encoders
from bertcli.training import ranks

Parallel = Literal["ddp", "fsdp"]
_LAYER = re.compile(r"\bencoder\.layers\.\d+$")
"""The name of a layer, in a model or in a part of it."""


def distribute(model: nn.Module, parallel: Parallel) -> nn.Module:
    """The wrapped model for training; its gradients become the mean over all ranks.

    DDP keeps a copy on each rank (Li et al. 2020). FSDP gives each rank a part of every layer's parameters,
    gradients and moments (Zhao et al. 2023, in torch's second version). It changes `model` itself: load
    weights before, and build the optimizer after.
    """
    if ranks.num_ranks() == 1:
        return model
    if parallel == "ddp":
        return nn.parallel.DistributedDataParallel(model, gradient_as_bucket_view=True)
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import fully_shard

    mesh = init_device_mesh(next(model.parameters()).device.type, (ranks.num_ranks(),))
    for name, module in list(model.named_modules()):
        if _LAYER.search(name):
            fully_shard(module, mesh=mesh)
    fully_shard(model, mesh=mesh)
    return model


def sync_gradients(model: nn.Module, now: bool) -> AbstractContextManager[object]:
    """The context of a backward pass; gradients are reduced over the ranks only if `now`."""
    if isinstance(model, nn.parallel.DistributedDataParallel):
        return nullcontext() if now else model.no_sync()
    if ranks.num_ranks() > 1:
        cast(Any, model).set_requires_gradient_sync(now)
    return nullcontext()


def reshard(model: nn.Module) -> None:
    """Give each rank its part of the parameters again, after a forward pass without a backward pass.

    Such a pass leaves the parameters outside of the layers whole, but the optimizer updates the parts.
    """
    if is_sharded(model):
        cast(Any, model).reshard()


def is_sharded(model: nn.Module) -> bool:
    """True if each rank has only a part of the model, so that all ranks must do the same forward passes."""
    return any(map(_is_sharded, model.parameters()))


def full_tensor(tensor: Tensor) -> Tensor:
    """The full parameter, moment or norm, also if FSDP keeps a part of it on each rank."""
    return cast(Any, tensor).full_tensor() if _is_sharded(tensor) else tensor


def full_weights(model: nn.Module) -> dict[str, Tensor]:
    """Parameter name -> full weight; a sharded weight is moved to the CPU."""
    return {
        name: full_tensor(tensor).cpu() if _is_sharded(tensor) else tensor
        for name, tensor in model.state_dict().items()
    }


def load_full_weights(model: nn.Module, weights: Mapping[str, Tensor]) -> None:
    """Load full weights into a model, which may be sharded."""
    own = model.state_dict()
    model.load_state_dict({name: shard_like(own[name], tensor) for name, tensor in weights.items()})


def shard_like(parameter: Tensor, tensor: Tensor) -> Tensor:
    """This rank's part of a full `tensor` if `parameter` is sharded; else `tensor`."""
    if not _is_sharded(parameter) or tensor.shape != parameter.shape:
        return tensor
    from torch.distributed.tensor import distribute_tensor

    like = cast(Any, parameter)
    return distribute_tensor(tensor, like.device_mesh, like.placements, src_data_rank=None)


def _is_sharded(tensor: Tensor) -> bool:
    if ranks.num_ranks() == 1:
        return False
    from torch.distributed.tensor import DTensor

    return isinstance(tensor, DTensor)


LARGEST_RATE = 4e14
"""Operations per second, as `model.architecture` counts them, that no current GPU exceeds with an uncompiled
BERT. It is an assumption, high enough that the time of a run is never overestimated."""
_WORTH_FROM = 180.0
"""Least seconds of an uncompiled run for which compiling saves time. The assumption: compiling takes up to 40
seconds and saves at least a fourth of the rest."""
_LAUNCH_SECONDS = 10e-6
"""Assumed time to start a kernel from Python. A layer needs about 100 kernels, forward and backward; the rest
of the model needs 150."""


def is_worth_compiling(
    architecture: Architecture,
    tokens: float,
    at_once: int,
    length: int,
    predicted: float,
    device: torch.device,
) -> bool:
    """The value of `compile: auto` for a run of `tokens` tokens, `at_once` of them in a micro-batch.

    It is False on a CPU, where the model's own kernels, which a compiler does not use, are faster.

    Args:
        length, predicted: the arguments of `model.architecture.forward_flops`.
    """
    by_products = tokens * training_flops(architecture, length, predicted) / LARGEST_RATE
    by_launches = tokens / at_once * launch_seconds(architecture.layers)
    return device.type == "cuda" and max(by_products, by_launches) >= _WORTH_FROM


def launch_seconds(layers: int) -> float:
    """The minimum time of a micro-batch on any GPU, even for a small model."""
    return _LAUNCH_SECONDS * (100 * layers + 150)


def compile_layers(model: nn.Module) -> None:
    """Compile every layer at its first pass; one compilation serves all, because they differ only in weights.

    The rest of the model is too small a part of a step. Call this before `wrapping.distribute`, which puts
    its communication between the layers.
    """
    for encoder in encoders(model):
        for layer in encoder.layers:
            layer.compile()
