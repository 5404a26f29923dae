"""Batches of random ids in the form of a stream's: full rows, 15 % masked, both labels of pairs."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import cycle

import torch

from bertcli.data.batch import Batch
from bertcli.data.pair_rules import PAIR_RULES
from bertcli.data.share import MicroBatch, Share

MASK_RATE = 0.15
_FIRST_ID = 5
"""Special ids are below it."""
_STEPS = 4
"""Drawn once and repeated, so that the loop is measured, not the drawing."""


def synthetic_steps(
    vocab_size: int,
    batch_size: int,
    length: int,
    share: Share,
    objective: str = "mlm+nsp",
    mask_rate: float = MASK_RATE,
) -> Iterator[list[MicroBatch]]:
    """Endless steps of `batch_size` rows of `length` tokens, divided by `share`."""
    generator = torch.Generator().manual_seed(0)
    masked = max(1, round(mask_rate * length))

    def batch(rows: int) -> Batch:
        ids_BT = torch.randint(_FIRST_ID, vocab_size, (rows, length), generator=generator)
        columns_BM = torch.rand(rows, length, generator=generator).topk(masked, dim=1).indices.sort().values
        return Batch(
            ids_BT=ids_BT,
            segments_BT=(torch.arange(length) >= length // 2).long().expand(rows, length),
            lengths_B=torch.full((rows,), length),
            rows_M=torch.arange(rows).repeat_interleave(masked),
            columns_M=columns_BM.flatten(),
            targets_M=torch.randint(_FIRST_ID, vocab_size, (rows * masked,), generator=generator),
            labels_B=torch.arange(rows) % 2 if PAIR_RULES[objective].is_pair else None,
            draws_M=torch.rand(rows * masked, generator=generator, dtype=torch.float64)
            if objective == "rtd"
            else None,
        )

    sizes = [len(rows) for rows in torch.arange(batch_size).split(share.micro_batch_size)]
    return cycle([share.of(sizes, batch) for _ in range(_STEPS)])
