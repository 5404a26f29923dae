"""A few real steps before a run -> time and memory of one of its steps."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import torch
from torch import nn

from bertcli.config.loop import LoopConfig
from bertcli.data.share import MicroBatch
from bertcli.measure.matmul import matmul_rate
from bertcli.measure.step import take_steps, time_steps
from bertcli.memory.peak import peak_memory
from bertcli.tasks.base import Task

SECONDS = 15.0
"""Of steps, so that the probe takes less than 20 s in all."""
_SHARE_OF_MATMUL = 0.5
"""Share of a device's matmul rate that a step reaches, roughly; the number of rows to try follows from it."""

MakeSteps = Callable[[int, int], Iterator[Sequence[MicroBatch]]]
"""(rows a step, rows at once) -> steps of the run, more than the probe can take."""


@dataclass(frozen=True)
class Probe:
    """What was measured.

    Attributes:
        step_seconds: of a full step of the run.
        tokens: real tokens of a full step.
        peak: most bytes that this process (on a GPU: torch) has held; None if the run's own micro-batches
            were too slow to try.
    """

    step_seconds: float
    tokens: float
    peak: int | None


def probe(
    model: nn.Module,
    task: Task,
    make_steps: MakeSteps,
    training: LoopConfig,
    row_flops: float,
    seconds: float = SECONDS,
) -> Probe:
    """Take steps of the run, or if they are slow, steps of fewer micro-batches.

    A step of n micro-batches takes a + n b seconds: steps of one and of two give a and b.

    Args:
        model: on its device.
        training: resolved.
        row_flops: of a row of full length, forward and backward.
    """
    assert training.micro_batch_size != "auto"
    assert training.precision != "auto"
    device = torch.device(training.device)
    rate = _SHARE_OF_MATMUL * matmul_rate(device, training.precision, seconds=0.2)
    affordable = max(1, int(seconds / 5 * rate / row_flops))
    rows = min(training.micro_batch_size, affordable)
    batches = [training.largest_batch] if training.largest_batch <= affordable else [rows, 2 * rows]
    times = []
    for batch_size in batches:
        reports = take_steps(model, task, make_steps(batch_size, rows), training=training)
        times.append(time_steps(reports, device, steps=50, seconds=seconds / len(batches)))
    tokens = times[-1].tokens_per_step * training.largest_batch / batches[-1]
    if len(times) == 1:
        step_seconds = times[0].median
    else:
        each = max(0.0, times[1].median - times[0].median)
        number = training.largest_batch / rows
        step_seconds = max(times[0].median - each, 0.0) + number * each
    is_own = rows == training.micro_batch_size
    return Probe(step_seconds, tokens, peak_memory(device) if is_own else None)
