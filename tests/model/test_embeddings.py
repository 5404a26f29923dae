"""Which embeddings are added, and which row of the position table is whose."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from bertcli.model.architecture import Architecture
from bertcli.model.encoder import Embeddings


def test_positions_start_at_the_offset_and_rows_end_where_the_table_does(odd: Architecture) -> None:
    sizes = replace(odd, position_offset=2)
    assert (sizes.usable_positions, odd.usable_positions) == (17, 19)
    embeddings = Embeddings(sizes).eval()
    ids_BT = torch.zeros(1, 17, dtype=torch.int64)
    words_and_segments = embeddings.word.weight[0] + embeddings.get_parameter("segment.weight")[0]
    expected = embeddings.norm(words_and_segments + embeddings.get_parameter("position.weight")[2:])
    torch.testing.assert_close(embeddings(ids_BT, ids_BT)[0], expected)
    longer_BT = torch.zeros(1, 18, dtype=torch.int64)
    with pytest.raises(ValueError, match="rows of 18 tokens, but the model has 17 positions"):
        embeddings(longer_BT, longer_BT)


def test_without_segments_none_are_read(odd: Architecture) -> None:
    embeddings = Embeddings(replace(odd, num_segments=0)).eval()
    assert embeddings.segment is None
    ids_BT = torch.arange(6).view(2, 3)
    expected = embeddings.norm(embeddings.word(ids_BT) + embeddings.get_parameter("position.weight")[:3])
    torch.testing.assert_close(embeddings(ids_BT, torch.full((2, 3), 9)), expected)
