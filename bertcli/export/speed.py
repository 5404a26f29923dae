"""Rows a second of several forms of a model, measured in turn on the CPU."""

from __future__ import annotations

import statistics
import time
from collections.abc import Mapping, Sequence

import torch
from torch import nn

from bertcli.data.rows import RowBatch, batch_of
from bertcli.text.frame import Row

_ROUNDS = 5


@torch.inference_mode()
def rows_per_second(
    models: Mapping[str, nn.Module], rows: Sequence[Row], batch_size: int, pad_id: int
) -> dict[str, float]:
    """The median of several rounds, in which the models read the same rows one after the other.

    The models have the interface of `model.task_models` and are in evaluation mode.
    """
    batches = [
        batch_of(rows[start : start + batch_size], pad_id, torch.device("cpu"))
        for start in range(0, len(rows), batch_size)
    ]
    seconds: dict[str, list[float]] = {name: [] for name in models}
    for round_ in range(_ROUNDS + 1):
        for name, model in models.items():
            taken = _seconds(model, batches)
            if round_ > 0:  # the first one prepares memory
                seconds[name].append(taken)
    return {name: len(rows) / statistics.median(taken) for name, taken in seconds.items()}


def _seconds(model: nn.Module, batches: Sequence[RowBatch]) -> float:
    begun = time.perf_counter()
    for batch in batches:
        model(batch.ids_BT, batch.segments_BT, batch.mask_BT)
    return time.perf_counter() - begun
