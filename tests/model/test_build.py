"""Positions that no row had are given what was learned of those that were; a model without values."""

from __future__ import annotations

import torch

from bertcli.model.architecture import Architecture
from bertcli.model.init import sizes_alone, tile_positions
from bertcli.model.pretraining import PretrainingModel


def test_positions_beyond_the_known_ones_repeat_them_without_the_first() -> None:
    table_TD = torch.randn(10, 4)
    tiled_TD = tile_positions(table_TD, known=4)
    assert torch.equal(tiled_TD, table_TD[[0, 1, 2, 3, 1, 2, 3, 1, 2, 3]])
    assert torch.equal(tile_positions(tiled_TD, known=4), tiled_TD)
    assert torch.equal(tile_positions(table_TD, known=4, offset=2), table_TD[[0, 1, 2, 3, 4, 5, 3, 4, 5, 3]])


def test_a_model_of_its_sizes_alone_draws_nothing(odd: Architecture) -> None:
    before = torch.get_rng_state()
    with sizes_alone():
        model = PretrainingModel(odd)
    assert torch.equal(torch.get_rng_state(), before)
    assert all(parameter.is_meta for parameter in model.parameters())
    shapes = {name: parameter.shape for name, parameter in model.named_parameters()}
    assert shapes == {name: parameter.shape for name, parameter in PretrainingModel(odd).named_parameters()}
