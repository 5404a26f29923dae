"""A probe of a run's steps on this machine."""

import time
from dataclasses import dataclass

import torch

from bertcli.advice.bench.plan import Plan, decide_here
from bertcli.advice.bench.timing import matmul_rate, take_steps, time_steps
from bertcli.config.run import DecidedLoop
from bertcli.model.architecture import training_flops
from bertcli.system.memory import peak_memory

SECONDS = 15.0
"""Time of the steps, so that the whole probe takes less than 20 s."""
_SHARE_OF_MATMUL = 0.5
"""Approximate share of a device's matmul rate that a step reaches; it decides the number of rows to try."""


@dataclass(frozen=True)
class Probe:
    """The result of a probe.

    Attributes:
        training: the training section, as this machine decides it.
        seconds: time of a full step of the run.
        first_seconds: extra time of the first steps, in which the model is compiled.
        tokens: number of real tokens in a full step.
        peak: most bytes that this process (on a GPU: torch) has held; None: the run's own micro-batches were
            too slow to try.
    """

    training: DecidedLoop
    seconds: float
    first_seconds: float
    tokens: float
    peak: int | None = None


def probe(plan: Plan, seconds: float = SECONDS) -> Probe:
    """Take steps of the run for some seconds; if they are slow, take steps of fewer micro-batches.

    A step of n micro-batches takes a + n b seconds; steps of one and of two micro-batches give a and b.

    Raises as `training.resolve.decide_loop`.
    """
    training = decide_here(plan)
    device = torch.device(training.device)
    model = plan.build().to(device)
    row_flops = training_flops(plan.architecture, plan.length, plan.predicted) * plan.length
    begun = time.perf_counter()
    rate = _SHARE_OF_MATMUL * matmul_rate(device, training.precision, seconds=0.2)
    affordable = max(1, int(seconds / 5 * rate / row_flops))
    rows = min(training.micro_batch_size, affordable)
    batches = [training.largest_batch] if training.largest_batch <= affordable else [rows, 2 * rows]
    times = []
    for batch_size in batches:
        reports = take_steps(model, plan.task, plan.make_steps(batch_size, rows), training=training)
        times.append(time_steps(reports, device, steps=50, seconds=seconds / len(batches)))
    step_seconds = times[0].median
    if len(times) > 1:
        each = max(0.0, times[1].median - times[0].median)
        step_seconds = max(times[0].median - each, 0.0) + training.largest_batch / rows * each
    took = time.perf_counter() - begun
    return Probe(
        training,
        step_seconds,
        first_seconds=max(0.0, took - seconds) if training.compile else 0.0,
        tokens=times[-1].tokens_per_step * training.largest_batch / batches[-1],
        peak=peak_memory(device) if rows == training.micro_batch_size else None,
    )
