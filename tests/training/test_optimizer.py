from __future__ import annotations

from functools import partial

import pytest
import torch

from bertcli.model.architecture import Architecture
from bertcli.model.pretraining import PretrainingModel
from bertcli.model.task_models import TaskModel, build_task_model
from bertcli.system.errors import UserError
from bertcli.training.optimizer import (
    build_optimizer,
    freeze,
    layer_rate_scale,
    load_optimizer_tensors,
    optimizer_tensors,
)


def new_model() -> PretrainingModel:
    torch.manual_seed(0)
    return PretrainingModel(Architecture(50, 16, 1, 2, 32, 16))


def take_step(model: PretrainingModel, optimizer: torch.optim.Optimizer, seed: int) -> None:
    generator = torch.Generator().manual_seed(seed)
    for parameter in model.parameters():
        parameter.grad = torch.randn(parameter.shape, generator=generator)
    optimizer.step()


def test_biases_and_layer_norms_are_not_decayed() -> None:
    model = new_model()
    optimizer = build_optimizer(model, (0.9, 0.999), 0.01)
    decayed = {id(p) for group in optimizer.param_groups if group["weight_decay"] for p in group["params"]}
    for name, parameter in model.named_parameters():
        spared = name.endswith("bias") or "norm" in name
        assert (id(parameter) in decayed) == (not spared), name
    assert sum(len(group["params"]) for group in optimizer.param_groups) == len(list(model.parameters()))


def test_decay_is_decoupled_from_the_gradient() -> None:
    """With a zero gradient, a weight shrinks by rate x decay and by nothing else."""
    model = new_model()
    optimizer = build_optimizer(model, (0.9, 0.999), 0.1)
    for group in optimizer.param_groups:
        group["lr"] = 0.5
    before = model.body.embeddings.word.weight.detach().clone()
    for parameter in model.parameters():
        parameter.grad = torch.zeros_like(parameter)
    optimizer.step()
    torch.testing.assert_close(model.body.embeddings.word.weight.detach(), before * (1 - 0.05))


def test_state_comes_back_to_the_bit() -> None:
    model, twin = new_model(), new_model()
    optimizer, copy = build_optimizer(model, (0.9, 0.98), 0.01), build_optimizer(twin, (0.9, 0.98), 0.01)
    for group in [*optimizer.param_groups, *copy.param_groups]:
        group["lr"] = 0.01
    assert optimizer_tensors(model, optimizer) == {}
    for seed in range(3):
        take_step(model, optimizer, seed)
    twin.load_state_dict(model.state_dict())
    load_optimizer_tensors(twin, copy, optimizer_tensors(model, optimizer))
    take_step(model, optimizer, 9)
    take_step(twin, copy, 9)
    assert all(torch.equal(a, b) for a, b in zip(model.parameters(), twin.parameters(), strict=True))


def test_moments_of_another_shape_are_refused() -> None:
    model = new_model()
    optimizer = build_optimizer(model, (0.9, 0.999), 0.01)
    take_step(model, optimizer, 0)
    tensors = optimizer_tensors(model, optimizer)
    name = "body.embeddings.word.weight"
    tensors[f"{name}/exp_avg"] = tensors[f"{name}/exp_avg"][:-1]
    with pytest.raises(
        UserError, match=rf"exp_avg of {name} has the shape \[49, 16\], the model's is \[50, 16\]"
    ):
        load_optimizer_tensors(model, optimizer, tensors)


def task_model() -> TaskModel:
    return build_task_model("sequences", Architecture(50, 16, 3, 2, 32, 16), num_outputs=2)


@pytest.mark.parametrize(
    ("name", "scale"),
    [
        ("classifier.weight", 1.0),
        ("pooler.dense.bias", 1.0),
        ("body.encoder.layers.2.attention.query.weight", 0.5),
        ("body.encoder.layers.1.feed_forward_norm.bias", 0.25),
        ("body.encoder.layers.0.attention.key.bias", 0.125),
        ("body.embeddings.word.weight", 0.0625),
        ("body.embeddings.norm.weight", 0.0625),
    ],
)
def test_each_layer_has_its_share_of_the_rate(name: str, scale: float) -> None:
    model = task_model()
    optimizer = build_optimizer(model, (0.9, 0.999), 0.01, partial(layer_rate_scale, decay=0.5, layers=3))
    parameter = model.get_parameter(name)
    (group,) = (g for g in optimizer.param_groups if any(parameter is p for p in g["params"]))
    assert group["rate_scale"] == scale
    assert group["weight_decay"] == (0.01 if parameter.ndim == 2 else 0.0)
    assert len(optimizer.param_groups) == 2 * 5  # matrices and vectors of head, three layers, embeddings
    assert sum(len(g["params"]) for g in optimizer.param_groups) == len(list(model.parameters()))


def test_without_decay_all_layers_share_their_groups() -> None:
    optimizer = build_optimizer(
        task_model(), (0.9, 0.999), 0.01, partial(layer_rate_scale, decay=1.0, layers=3)
    )
    assert [group["rate_scale"] for group in optimizer.param_groups] == [1.0, 1.0]


@pytest.mark.parametrize(
    ("layers", "frozen"),
    [(0, ()), (1, ("embeddings", "layers.0")), (2, ("embeddings", "layers.0", "layers.1"))],
)
def test_the_embeddings_are_frozen_with_the_lowest_layers(layers: int, frozen: tuple[str, ...]) -> None:
    model = task_model()
    freeze(model, layers)
    optimizer = build_optimizer(model, (0.9, 0.999), 0.01)
    trained = {id(parameter) for group in optimizer.param_groups for parameter in group["params"]}
    for name, parameter in model.named_parameters():
        assert (id(parameter) in trained) == (not any(f"{part}." in name for part in frozen)), name
