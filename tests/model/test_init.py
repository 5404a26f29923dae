import math
from dataclasses import replace

import pytest
import torch
from torch import nn

from bertcli.folders.config_file import new_architecture
from bertcli.model.architecture import Architecture, Convolution
from bertcli.model.init import expected_first_mlm_loss, initialize, truncated_std
from bertcli.model.pretraining import PretrainingModel
from tests.decided import model_config

STD = 0.02


@pytest.fixture(scope="module")
def fresh() -> PretrainingModel:
    torch.manual_seed(0)
    sizes = new_architecture(model_config(preset="tiny"), vocab_size=997)
    model = PretrainingModel(replace(sizes, convolution=Convolution(3, 1, "gelu")))
    for parameter in model.parameters():  # so that nothing passes for having been right before
        nn.init.constant_(parameter, 7.0)
    initialize(model, STD)
    return model


def table() -> dict[tuple[str, str], str]:
    rows = [line.split("|")[1:4] for line in (initialize.__doc__ or "").splitlines() if "|" in line][2:]
    return {(module.strip(), parameter.strip()): value.strip() for module, parameter, value in rows}


def test_every_parameter_has_its_row_of_the_table_and_every_row_a_parameter(fresh):
    used = {
        (type(module).__name__, name)
        for module in fresh.modules()
        for name, _ in module.named_parameters(recurse=False)
    }
    assert used == set(table())


def test_every_parameter_has_the_value_that_the_table_says(fresh):
    for module in fresh.modules():
        for name, parameter in module.named_parameters(recurse=False):
            value = table()[type(module).__name__, name]
            if not value.startswith("normal(0, std) truncated at 2 std"):
                assert torch.equal(parameter, torch.full_like(parameter, float(value)))
                continue
            tolerance = 4 / math.sqrt(parameter.numel())
            assert parameter.abs().max() <= 2 * STD
            assert parameter.std().item() == pytest.approx(truncated_std(STD), rel=tolerance)
            assert abs(parameter.mean().item()) < tolerance * STD


def test_a_head_for_a_trained_body_is_not_truncated():
    torch.manual_seed(0)
    head = nn.Linear(1000, 1000)
    initialize(head, STD, truncated=False)
    assert head.weight.std().item() == pytest.approx(STD, rel=4e-3)
    assert head.weight.abs().max() > 4 * STD
    assert not head.bias.any()


def test_no_row_of_an_embedding_is_zeroed(fresh):
    assert (fresh.body.embeddings.word.weight.std(dim=1) > 0.8 * truncated_std(STD)).all()


def test_truncated_std_is_that_of_many_draws():
    torch.manual_seed(0)
    drawn = nn.init.trunc_normal_(torch.empty(1_000_000), std=STD, a=-2 * STD, b=2 * STD)
    assert truncated_std(STD) == pytest.approx(0.87962 * STD, rel=1e-5)
    assert drawn.std().item() == pytest.approx(truncated_std(STD), rel=3e-3)


def test_expected_first_loss_of_base():
    base = Architecture(30522, hidden=768, layers=12, heads=12, feed_forward=3072, max_positions=512)
    assert expected_first_mlm_loss(base) == pytest.approx(math.log(30522) + 768 * 0.0175925**2 / 2, abs=1e-4)
