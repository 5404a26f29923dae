"""Positions that no row had are given what was learnt of those that were."""

from __future__ import annotations

import torch

from bertcli.model.architecture import Architecture
from bertcli.model.embeddings import Embeddings


def test_positions_beyond_the_known_ones_repeat_them_without_the_first() -> None:
    sizes = Architecture(vocab_size=7, hidden=4, layers=1, heads=2, feed_forward=8, max_positions=10)
    embeddings = Embeddings(sizes)
    before_TD = embeddings.position.weight.detach().clone()
    embeddings.tile_positions(known=4)
    after_TD = embeddings.position.weight.detach()
    assert torch.equal(after_TD, before_TD[[0, 1, 2, 3, 1, 2, 3, 1, 2, 3]])
    embeddings.tile_positions(known=4)
    assert torch.equal(embeddings.position.weight.detach(), after_TD)
