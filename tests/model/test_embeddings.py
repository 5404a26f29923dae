"""Positions that no row had are given what was learned of those that were."""

from __future__ import annotations

import torch

from bertcli.model.embeddings import tile_positions


def test_positions_beyond_the_known_ones_repeat_them_without_the_first() -> None:
    table_TD = torch.randn(10, 4)
    tiled_TD = tile_positions(table_TD, known=4)
    assert torch.equal(tiled_TD, table_TD[[0, 1, 2, 3, 1, 2, 3, 1, 2, 3]])
    assert torch.equal(tile_positions(tiled_TD, known=4), tiled_TD)
