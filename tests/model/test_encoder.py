from dataclasses import replace

import pytest
import torch

from bertcli.model.bert import Bert
from bertcli.model.pretraining import BertForPreTraining


def gradients(model, activation_checkpointing: bool):
    model.bert.encoder.activation_checkpointing = activation_checkpointing
    model.train().zero_grad()
    torch.manual_seed(7)  # dropout draws from here
    ids_BT = torch.arange(22).view(2, 11) % model.architecture.vocab_size
    mask_BT = torch.arange(11) < torch.tensor([[11], [6]])
    output = model(ids_BT, torch.zeros_like(ids_BT), mask_BT, torch.tensor([2, 13]))
    (output.mlm_logits_MV.square().sum() + output.nsp_logits_B2.sum()).backward()
    return {name: parameter.grad.clone() for name, parameter in model.named_parameters()}


def test_activation_checkpointing_gives_the_same_gradients_to_the_bit_with_dropout(model):
    kept, computed_again = gradients(model, False), gradients(model, True)
    assert all(torch.equal(kept[name], computed_again[name]) for name in kept)


@pytest.mark.parametrize("lengths", [[11, 6, 1], [11, 11, 11]], ids=["padded", "full"])
@pytest.mark.parametrize("training", [False, True])
def test_tokens_that_are_wanted_come_out_as_they_do_with_all_the_others(odd, lengths, training):
    torch.manual_seed(0)
    odd = replace(odd, dropout=0.0, attention_dropout=0.0)
    bert = Bert(odd).double().train(training)
    ids_BT = torch.randint(0, odd.vocab_size, (3, 11))
    mask_BT = torch.arange(11) < torch.tensor(lengths)[:, None]
    wanted_K = torch.tensor([22, 0, 5, 16, 0, 11])  # one of them twice
    weights_K1 = torch.arange(1.0, 7.0, dtype=torch.float64)[:, None]
    inputs = ids_BT, torch.zeros_like(ids_BT), mask_BT

    want_KD, got_KD = bert(*inputs).flatten(0, 1)[wanted_K], bert(*inputs, wanted_K)
    torch.testing.assert_close(got_KD, want_KD)
    want, got = (
        torch.autograd.grad((hidden_KD.square() * weights_K1).sum(), list(bert.parameters()))
        for hidden_KD in (want_KD, got_KD)
    )
    torch.testing.assert_close(got, want)


def test_where_no_token_is_wanted_nothing_comes_out_and_no_gradient_goes_back(odd):
    bert = Bert(odd)
    ids_BT = torch.zeros(2, 5, dtype=torch.int64)
    hidden_KD = bert(ids_BT, ids_BT, None, torch.empty(0, dtype=torch.int64))
    assert hidden_KD.shape == (0, odd.hidden)
    hidden_KD.sum().backward()
    assert not any(parameter.grad.any() for parameter in bert.parameters() if parameter.grad is not None)


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
    layer = model.bert.encoder.layers[0]
    layer.register_forward_pre_hook(lambda *_: calls.append(1))
    gradients(model, False)
    assert len(calls) == 1
    gradients(model, True)
    assert len(calls) == 3


def test_a_fresh_model_depends_on_torchs_seed_alone(odd):
    def weights(seed):
        torch.manual_seed(seed)
        return torch.cat([parameter.flatten() for parameter in BertForPreTraining(odd).parameters()])

    assert torch.equal(weights(1), weights(1))
    assert not torch.equal(weights(1), weights(2))
