from dataclasses import replace

import pytest
import torch

from bertcli.model.architecture import Convolution, Relative
from bertcli.model.pretraining import PretrainingModel


def gradients(model, activation_checkpointing: bool):
    model.body.encoder.activation_checkpointing = activation_checkpointing
    model.train().zero_grad()
    torch.manual_seed(7)  # dropout draws from here
    ids_BT = torch.arange(22).view(2, 11) % model.architecture.vocab_size
    mask_BT = torch.arange(11) < torch.tensor([[11], [6]])
    output = model(ids_BT, torch.zeros_like(ids_BT), mask_BT, torch.tensor([2, 13]))
    (output.mlm_logits_MV.square().sum() + output.pair_logits_B2.sum()).backward()
    return {name: parameter.grad.clone() for name, parameter in model.named_parameters()}


def test_activation_checkpointing_gives_the_same_gradients_to_the_bit_with_dropout(model):
    kept, computed_again = gradients(model, False), gradients(model, True)
    assert all(torch.equal(kept[name], computed_again[name]) for name in kept)


@pytest.mark.parametrize("convolution", [None, Convolution(3, 1, "tanh")])
def test_so_it_does_with_relative_positions(odd, convolution):
    torch.manual_seed(0)
    relative = Relative(True, True, max_distance=19, buckets=6, normalized_table=True)
    model = PretrainingModel(replace(odd, relative=relative, convolution=convolution))
    kept, computed_again = gradients(model, False), gradients(model, True)
    assert all(torch.equal(kept[name], computed_again[name]) for name in kept)
    assert all(kept[name].any() for name in kept if "relative" in name)


def test_dropout_is_on_in_training_and_off_in_evaluation(model):
    ids_BT = torch.arange(6).view(2, 3)
    segments_BT = torch.zeros_like(ids_BT)
    one, two = model(ids_BT, segments_BT), model(ids_BT, segments_BT)
    assert torch.equal(one.mlm_logits_MV, two.mlm_logits_MV)
    model.train()
    one, two = model(ids_BT, segments_BT), model(ids_BT, segments_BT)
    assert not torch.equal(one.mlm_logits_MV, two.mlm_logits_MV)


def test_checkpointing_computes_each_layer_again(model):
    calls = []
    layer = model.body.encoder.layers[0]
    layer.register_forward_pre_hook(lambda *_: calls.append(1))
    gradients(model, False)
    assert len(calls) == 1
    gradients(model, True)
    assert len(calls) == 3


def test_a_fresh_model_depends_on_torchs_seed_alone(odd):
    def weights(seed):
        torch.manual_seed(seed)
        return torch.cat([parameter.flatten() for parameter in PretrainingModel(odd).parameters()])

    assert torch.equal(weights(1), weights(1))
    assert not torch.equal(weights(1), weights(2))
