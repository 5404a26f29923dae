"""Rows become tensors: filled up to the longest, segments and mask where they belong."""

import torch

from bertcli.batches.batch import batch_of
from bertcli.tokenizer.frame import Frame

CPU = torch.device("cpu")
FRAME = Frame((2,), (3,), (3,), two_segments=True)


def test_rows_are_framed_and_filled_up_to_the_longest() -> None:
    batch = batch_of([FRAME.row([8], [9]), FRAME.row([])], pad_id=6, device=CPU)
    assert batch.ids_BT.tolist() == [[2, 8, 3, 9, 3], [2, 3, 6, 6, 6]]
    assert batch.segments_BT.tolist() == [[0, 0, 0, 1, 1], [0, 0, 0, 0, 0]]
    assert batch.mask_BT is not None
    assert batch.mask_BT.tolist() == [[True] * 5, [True, True, False, False, False]]


def test_rows_of_one_length_need_no_mask() -> None:
    assert batch_of([FRAME.row([5]), FRAME.row([7])], pad_id=0, device=CPU).mask_BT is None
