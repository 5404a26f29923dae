from __future__ import annotations

import torch

from bertcli.engine.optimizer import build_optimizer, load_optimizer_tensors, optimizer_tensors
from bertcli.model.architecture import Architecture
from bertcli.model.pretraining import BertForPreTraining


def new_model() -> BertForPreTraining:
    torch.manual_seed(0)
    return BertForPreTraining(Architecture(50, 16, 1, 2, 32, 16))


def take_step(model: BertForPreTraining, optimizer: torch.optim.Optimizer, seed: int) -> None:
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
    before = model.bert.embeddings.word.weight.detach().clone()
    for parameter in model.parameters():
        parameter.grad = torch.zeros_like(parameter)
    optimizer.step()
    torch.testing.assert_close(model.bert.embeddings.word.weight.detach(), before * (1 - 0.05))


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
