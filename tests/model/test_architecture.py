import pytest
import torch

from bertcli.folders.config_file import new_architecture
from bertcli.model.architecture import Architecture
from bertcli.model.pretraining import PretrainingModel
from tests.decided import model_config


@pytest.mark.parametrize(
    ("preset", "parameters"),
    [
        ("tiny", 4_433_468),
        ("micro", 9_688_380),
        ("mini", 11_267_900),
        ("small", 29_058_876),
        ("medium", 41_668_412),
        ("base", 110_106_428),
        ("large", 336_226_108),
    ],
)
def test_presets_have_the_published_number_of_parameters(preset, parameters):
    with torch.device("meta"):
        model = PretrainingModel(new_architecture(model_config(preset=preset), vocab_size=30522))
    assert sum(parameter.numel() for parameter in model.parameters()) == parameters


def test_sizes_given_one_by_one_replace_the_presets():
    config = model_config(
        preset="tiny", layers=3, hidden=96, heads=4, feed_forward=50, max_positions=77, dropout=0.25
    )
    assert new_architecture(config, vocab_size=101) == Architecture(
        vocab_size=101,
        hidden=96,
        layers=3,
        heads=4,
        feed_forward=50,
        max_positions=77,
        dropout=0.25,
        attention_dropout=0.25,
        init_std=0.057,
    )


@pytest.mark.parametrize(("hidden", "std"), [(128, 0.049), (768, 0.02), (1024, 0.017)])
def test_first_weights_are_larger_in_narrow_models_unless_they_are_as_published(hidden, std):
    keys = {"layers": 1, "hidden": hidden}
    assert new_architecture(model_config(**keys), vocab_size=101).init_std == std
    published = model_config(initialization="published", **keys)
    assert new_architecture(published, vocab_size=101).init_std == 0.02


def test_heads_that_do_not_divide_hidden_fail():
    with pytest.raises(ValueError, match=r"heads must divide hidden: 10 / 3 leaves 1"):
        Architecture(vocab_size=7, hidden=10, layers=1, heads=3, feed_forward=5, max_positions=8)


def test_only_biases_and_norms_have_fewer_than_two_axes(odd):
    for name, parameter in PretrainingModel(odd).named_parameters():
        is_matrix = name.endswith("weight") and "norm" not in name
        assert (parameter.ndim >= 2) == is_matrix, name


def test_without_nsp_there_is_neither_pooler_nor_pair_head(odd):
    model = PretrainingModel(odd, pair_head=False)
    assert not any("pooler" in name or "nsp" in name for name in model.state_dict())
    ids_BT = torch.zeros(2, 3, dtype=torch.long)
    assert model(ids_BT, ids_BT).pair_logits_B2 is None
