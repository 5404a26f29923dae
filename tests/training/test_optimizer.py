from __future__ import annotations

from functools import partial

import pytest
import torch

from bertcli.config.section import OptimizerName, Precision
from bertcli.model.architecture import Architecture
from bertcli.model.pretraining import PretrainingModel
from bertcli.model.task_models import TaskModel, build_task_model
from bertcli.system.errors import UserError
from bertcli.training.optimizer import (
    build_optimizer,
    finetuning_rate,
    freeze,
    layer_rate_scale,
    load_optimizer_tensors,
    optimizer_tensors,
    orthogonalize,
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


@pytest.mark.parametrize("shape", [(64, 64), (32, 128), (128, 32)])
def test_orthogonal_updates_keep_the_directions_and_level_their_lengths(shape: tuple[int, int]) -> None:
    torch.manual_seed(0)
    left, _, right = torch.linalg.svd(torch.randn(shape), full_matrices=False)
    lengths = torch.logspace(0, -2, min(shape))
    inside = left.T @ orthogonalize((left * lengths @ right)[None])[0] @ right.T
    assert inside.diagonal().min() > 0.6
    assert inside.diagonal().max() < 1.3
    torch.testing.assert_close(inside, inside.diagonal().diag(), atol=2e-4, rtol=0)


def test_muon_moves_the_matrices_of_the_layers_and_adamw_all_else() -> None:
    """Two steps, against both rules written out: Jordan et al. 2024, with the scale of Liu et al. 2025."""
    model, twin = new_model(), new_model()
    muon = build_optimizer(model, (0.9, 0.98), 0.1, kind="muon")
    for group in muon.param_groups:
        group["lr"] = 0.01
    adamw = torch.optim.AdamW(twin.parameters(), lr=0.01, betas=(0.9, 0.98), eps=1e-6, weight_decay=0.0)
    momenta = {name: torch.zeros_like(value) for name, value in twin.named_parameters()}
    for seed in (1, 2):
        before = {name: value.detach().clone() for name, value in twin.named_parameters()}
        take_step(model, muon, seed)
        take_step(twin, adamw, seed)
        for name, parameter in twin.named_parameters():
            decay = 1 - 0.01 * 0.1 * (parameter.ndim == 2)
            if parameter.ndim == 2 and (".layers." in name or name == "mlm_head.dense.weight"):
                assert parameter.grad is not None
                momenta[name] = 0.95 * momenta[name] + 0.05 * parameter.grad
                step = 0.05 * parameter.grad + 0.95 * momenta[name]
                length = 0.2 * max(parameter.shape) ** 0.5
                expected = decay * before[name] - 0.01 * length * orthogonalize(step[None])[0]
            else:
                expected = parameter.detach() - (1 - decay) * before[name]
            torch.testing.assert_close(model.get_parameter(name).detach(), expected, atol=1e-6, rtol=1e-5)
            parameter.data.copy_(model.get_parameter(name).data)


def test_muon_in_bf16_moves_the_matrices_alike() -> None:
    """To the rounding of bf16 in the five products; all parameters and states stay fp32."""
    model, twin = new_model(), new_model()
    before = model.mlm_head.dense.weight.detach().clone()
    sides: list[tuple[PretrainingModel, Precision]] = [(model, "bf16"), (twin, "fp32")]
    for each, precision in sides:
        optimizer = build_optimizer(each, (0.9, 0.98), 0.0, kind="muon", precision=precision)
        for group in optimizer.param_groups:
            group["lr"] = 0.01
        take_step(each, optimizer, 1)
        assert {value.dtype for state in optimizer.state.values() for value in state.values()} == {
            torch.float32
        }
    moved, expected = (each.mlm_head.dense.weight.detach() - before for each in (model, twin))
    assert 0 < float((moved - expected).norm() / expected.norm()) < 0.02


def test_muon_leaves_what_has_no_gradient() -> None:
    model = new_model()
    freeze(model, layers=1)
    optimizer = build_optimizer(model, (0.9, 0.98), 0.1, kind="muon")
    for parameter in model.parameters():
        parameter.grad = None
    before = {name: value.clone() for name, value in model.state_dict().items()}
    optimizer.step()
    assert all(torch.equal(value, before[name]) for name, value in model.state_dict().items())


@pytest.mark.parametrize("kind", ["adamw", "muon"])
def test_state_comes_back_to_the_bit(kind: OptimizerName) -> None:
    model, twin = new_model(), new_model()
    optimizer, copy = (build_optimizer(each, (0.9, 0.98), 0.01, kind=kind) for each in (model, twin))
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


@pytest.mark.parametrize(
    ("hidden", "std", "rate"), [(768, 0.043, 2.9e-5), (384, 0.043, 8.2e-5), (384, 0.086, 1.6e-4)]
)
def test_larger_weights_and_narrower_models_are_finetuned_faster(
    hidden: int, std: float, rate: float
) -> None:
    """0.043 is about the size of the weights of the published BERT-base."""
    model = PretrainingModel(Architecture(50, hidden, 1, 2, hidden, 16))
    torch.manual_seed(0)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            parameter.normal_(std=1.0 if "embeddings" in name or parameter.ndim == 1 else std)
    assert finetuning_rate(model) == pytest.approx(rate, rel=0.05)


def test_what_all_layers_of_deberta_read_is_frozen_below_them() -> None:
    names = ("body.encoder.relative.table.weight", "body.encoder.convolution.dense.weight")
    assert [layer_rate_scale(name, decay=0.5, layers=3) for name in names] == [0.0625, 0.125]
