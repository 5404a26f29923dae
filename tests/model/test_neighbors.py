"""The first weights of new models: whom the heads of the first layer look at before any step."""

from __future__ import annotations

import pytest
import torch

from bertcli.families.registry import NEW
from bertcli.folders.config_file import new_architecture
from bertcli.model.encoder import Body
from bertcli.model.init import look_at_neighbors
from bertcli.model.pretraining import PretrainingModel
from bertcli.objectives.registry import OBJECTIVES
from tests.decided import model_config

LENGTH = 64


def new_model(family: str, **keys) -> PretrainingModel:
    """A new model with such weights, whose positions begin at their offset."""
    torch.manual_seed(3)
    sizes = new_architecture(model_config(family=family, **keys), vocab_size=300, objective=OBJECTIVES["mlm"])
    model = PretrainingModel(sizes, pair_head=False)
    look_at_neighbors(model, sizes.init_std)
    return model.eval()


def weight_of(body: Body, distance: int, layer: int = 0) -> torch.Tensor:
    """The mean weight that each head of a layer gives to the token at this distance, on random rows."""
    ids_BT = torch.randint(10, 300, (4, LENGTH))
    probabilities_BNTT = body.trace(ids_BT, torch.zeros_like(ids_BT))[1][layer]
    return probabilities_BNTT.diagonal(distance, 2, 3).mean(dim=(0, 2))


def test_a_head_of_one_feature_cannot_look_at_a_neighbor() -> None:
    model = new_model("bert", layers=1, hidden=4, heads=4)
    assert weight_of(model.body, 1).mean().item() == pytest.approx(1 / LENGTH, rel=0.5)


@pytest.mark.parametrize(
    ("family", "layers", "hidden"),
    [
        *((family, 2, 128) for family in ("bert", "roberta", "distilbert", "albert", "electra")),
        ("bert", 1, 768),
        ("albert", 1, 768),
    ],
)
def test_heads_look_at_their_neighbor(family: str, layers: int, hidden: int) -> None:
    body = new_model(family, layers=layers, hidden=hidden).body
    distances = [(head // 2 + 1) * (-1 if head % 2 == 0 else 1) for head in range(hidden // 64)]
    weights = {distance: weight_of(body, distance) for distance in {-2, -1, 0, 1, 2, 9, *distances}}
    for head, distance in enumerate(distances):
        for other, weights_n in weights.items():
            assert weights_n[head] > 0.6 if other == distance else weights_n[head] < 0.05
    if family != "albert" and layers > 1:  # its layers share their weights
        assert weight_of(body, -1, layer=1).max() < 0.05


def test_words_keep_their_part_of_the_embeddings() -> None:
    """Rows of other words give other hidden states, by about the words' share of the variance."""
    body = new_model("bert", layers=1, hidden=128).body
    ids_BT = torch.randint(10, 300, (2, LENGTH))
    one_TD, other_TD = body.embeddings(ids_BT, torch.zeros_like(ids_BT)).detach()
    difference = (one_TD - other_TD).square().mean() / 2
    assert 0.15 < difference < 0.35  # of 1, the variance after the norm


@pytest.mark.parametrize(
    "family", [name for name in NEW if not name.startswith(("bert", "ro", "dis", "al", "el"))]
)
def test_families_without_a_position_table_keep_what_they_drew(family: str) -> None:
    keys = {"family": family, "layers": 1, "hidden": 128}
    sizes = new_architecture(model_config(**keys), vocab_size=300, objective=OBJECTIVES["mlm"])
    torch.manual_seed(3)
    drawn = PretrainingModel(sizes, pair_head=False)
    for name, weight in new_model(**keys).state_dict().items():
        assert torch.equal(weight, drawn.state_dict()[name]), name


def test_a_head_of_a_few_features_and_an_odd_width_are_possible() -> None:
    body = new_model("bert", layers=1, hidden=15, heads=5, feed_forward=20).body
    assert torch.isfinite(weight_of(body, -1)).all()


def test_wider_hidden_states_keep_the_angles_of_embeddings() -> None:
    """The queries hold the inverse of this matrix, which would amplify rounding if it were a random one."""
    body = new_model("albert", layers=1, hidden=128).body
    assert body.embeddings.widen is not None
    assert torch.linalg.cond(body.embeddings.widen.weight) < 1.001
