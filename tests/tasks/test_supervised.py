"""The batch that labeled tasks share: cut at items, rows of like length together."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from bertcli.batches.share import Share
from bertcli.tasks.supervised import Item, LabeledBatch
from bertcli.tokenizer.frame import Row

items = st.lists(
    st.lists(st.integers(1, 30), min_size=1, max_size=4).map(
        lambda lengths: Item(0, tuple(Row([7] * length, length) for length in lengths), 0)
    ),
    min_size=1,
    max_size=20,
)


@given(items, st.integers(1, 12))
def test_a_split_keeps_every_item_whole_and_sorts_by_length(items: list[Item], micro: int) -> None:
    batch = LabeledBatch(tuple(items), pad_id=0)
    parts = [each.batch for each in batch.micro_batches(Share(micro))]
    kept = [item for part in parts for item in part.items]
    assert sorted(map(id, kept)) == sorted(map(id, items))
    assert [item.length for item in kept] == sorted((item.length for item in items), reverse=True)
    assert all(part.num_rows <= micro or len(part.items) == 1 for part in parts)
    assert sum(part.num_tokens for part in parts) == batch.num_tokens
    assert sum(part.num_rows for part in parts) == batch.num_rows
