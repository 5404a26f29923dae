"""Batches of no text at all, as a stream gives them: full rows, 15 % masked, both labels."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import cycle

import torch

from bertcli.data.batch import Batch
from bertcli.data.share import MicroBatch, Share

MASK_RATE = 0.15
_FIRST_ID = 5
"""Below it lie the special ids."""
_STEPS = 4
"""Drawn once and repeated: what the loop costs shall show, not the drawing."""


def synthetic_steps(
    vocab_size: int,
    batch_size: int,
    length: int,
    share: Share,
    pairs: bool = True,
    mask_rate: float = MASK_RATE,
) -> Iterator[list[MicroBatch]]:
    """Endless steps of `batch_size` rows of `length` tokens, cut as `share` says."""
    generator = torch.Generator().manual_seed(0)
    steps = []
    for _ in range(_STEPS):
        sizes = [len(rows) for rows in torch.arange(batch_size).split(share.micro_batch_size)]
        steps.append(
            share.of(
                sizes,
                lambda rows: _batch(
                    vocab_size, rows, length, pairs=pairs, mask_rate=mask_rate, generator=generator
                ),
            )
        )
    return cycle(steps)


def _batch(
    vocab_size: int, rows: int, length: int, pairs: bool, mask_rate: float, generator: torch.Generator
) -> Batch:
    ids_BT = torch.randint(_FIRST_ID, vocab_size, (rows, length), generator=generator)
    masked = max(1, round(mask_rate * length))
    columns_BM = torch.rand(rows, length, generator=generator).topk(masked, dim=1).indices.sort(dim=1).values
    rows_M = torch.arange(rows).repeat_interleave(masked)
    columns_M = columns_BM.flatten()
    return Batch(
        ids_BT=ids_BT,
        segments_BT=(torch.arange(length) >= length // 2).long().expand(rows, length),
        lengths_B=torch.full((rows,), length),
        rows_M=rows_M,
        columns_M=columns_M,
        targets_M=torch.randint(_FIRST_ID, vocab_size, (len(rows_M),), generator=generator),
        labels_B=torch.arange(rows) % 2 if pairs else None,
    )
