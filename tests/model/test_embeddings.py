"""Which embeddings are added; positions that no row had are given what was learned of those that were."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from bertcli.model.architecture import Architecture
from bertcli.model.embeddings import Embeddings, tile_positions


def test_positions_beyond_the_known_ones_repeat_them_without_the_first() -> None:
    table_TD = torch.randn(10, 4)
    tiled_TD = tile_positions(table_TD, known=4)
    assert torch.equal(tiled_TD, table_TD[[0, 1, 2, 3, 1, 2, 3, 1, 2, 3]])
    assert torch.equal(tile_positions(tiled_TD, known=4), tiled_TD)
    assert torch.equal(tile_positions(table_TD, known=4, offset=2), table_TD[[0, 1, 2, 3, 4, 5, 3, 4, 5, 3]])


def test_positions_start_at_the_offset_and_rows_end_where_the_table_does(odd: Architecture) -> None:
    sizes = replace(odd, position_offset=2)
    assert (sizes.usable_positions, odd.usable_positions) == (17, 19)
    embeddings = Embeddings(sizes).eval()
    ids_BT = torch.zeros(1, 17, dtype=torch.int64)
    words_and_segments = embeddings.word.weight[0] + embeddings.get_parameter("segment.weight")[0]
    expected = embeddings.norm(words_and_segments + embeddings.position.weight[2:])
    torch.testing.assert_close(embeddings(ids_BT, ids_BT)[0], expected)
    longer_BT = torch.zeros(1, 18, dtype=torch.int64)
    with pytest.raises(ValueError, match="rows of 18 tokens, but the model has 17 positions"):
        embeddings(longer_BT, longer_BT)


def test_without_segments_none_are_read(odd: Architecture) -> None:
    embeddings = Embeddings(replace(odd, num_segments=0)).eval()
    assert embeddings.segment is None
    ids_BT = torch.arange(6).view(2, 3)
    expected = embeddings.norm(embeddings.word(ids_BT) + embeddings.position.weight[:3])
    torch.testing.assert_close(embeddings(ids_BT, torch.full((2, 3), 9)), expected)
