"""A model over the ranks of a run: a copy on each (DDP), or of every layer a part (FSDP)."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext
from typing import Any, Literal, cast

from torch import Tensor, nn

from bertcli.distributed import ranks

Parallel = Literal["ddp", "fsdp"]


def spread(model: nn.Module, parallel: Parallel) -> nn.Module:
    """The model to train with: its gradients become the mean over all ranks.

    DDP keeps a copy on each rank (Li et al. 2020). FSDP gives each rank a part of every layer's parameters,
    gradients and moments (Zhao et al. 2023, in torch's second version); it changes `model` itself, so
    weights are loaded before, and the optimizer is built after.
    """
    if ranks.num_ranks() == 1:
        return model
    if parallel == "ddp":
        return nn.parallel.DistributedDataParallel(model, gradient_as_bucket_view=True)
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import fully_shard

    mesh = init_device_mesh(next(model.parameters()).device.type, (ranks.num_ranks(),))
    for layer in cast(Any, model).body.encoder.layers:
        fully_shard(layer, mesh=mesh)
    fully_shard(model, mesh=mesh)
    return model


def exchange(model: nn.Module, now: bool) -> AbstractContextManager[object]:
    """The context of a backward pass; gradients are exchanged between ranks only where `now`."""
    if isinstance(model, nn.parallel.DistributedDataParallel):
        return nullcontext() if now else model.no_sync()
    if ranks.num_ranks() > 1:
        cast(Any, model).set_requires_gradient_sync(now)
    return nullcontext()


def is_spread(model: nn.Module) -> bool:
    """Whether each rank keeps a part of the model only, so that all must make the same forward passes."""
    return any(_is_spread(parameter) for parameter in model.parameters())


def whole(tensor: Tensor) -> Tensor:
    """All of a parameter, moment or norm of which FSDP keeps a part on each rank."""
    return cast(Any, tensor).full_tensor() if _is_spread(tensor) else tensor


def whole_weights(model: nn.Module) -> dict[str, Tensor]:
    """Every weight by its name; what is spread over GPUs comes to the CPU."""
    weights = {}
    for name, tensor in model.state_dict().items():
        weights[name] = whole(tensor).cpu() if _is_spread(tensor) else tensor
    return weights


def load_weights(model: nn.Module, weights: Mapping[str, Tensor]) -> None:
    """Put whole weights into a model, spread or not."""
    own = model.state_dict()
    model.load_state_dict({name: part_like(own[name], tensor) for name, tensor in weights.items()})


def part_like(parameter: Tensor, tensor: Tensor) -> Tensor:
    """The part of a whole `tensor` that this rank keeps, where `parameter` is spread."""
    if not _is_spread(parameter) or tensor.shape != parameter.shape:
        return tensor
    from torch.distributed.tensor import distribute_tensor

    spread_parameter = cast(Any, parameter)
    return distribute_tensor(tensor, spread_parameter.device_mesh, spread_parameter.placements)


def _is_spread(tensor: Tensor) -> bool:
    if ranks.num_ranks() == 1:
        return False
    from torch.distributed.tensor import DTensor

    return isinstance(tensor, DTensor)
