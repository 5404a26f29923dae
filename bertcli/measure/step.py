"""Optimizer steps of the training loop, timed."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import torch
from torch import nn

from bertcli.config.loop import LoopConfig
from bertcli.data.share import MicroBatch
from bertcli.engine.compiling import compile_layers
from bertcli.engine.loop import train
from bertcli.engine.optimizer import build_optimizer
from bertcli.engine.step_report import StepReport
from bertcli.measure.clock import now
from bertcli.runs.resolve import loop_settings
from bertcli.tasks.base import Task

WARMUP_STEPS = 3
"""Not timed: they allocate memory, choose kernels and make AdamW's moments."""


@dataclass(frozen=True)
class StepTimes:
    """Consecutive steps, each with the drawing of its batch.

    Attributes:
        seconds, tokens: of each step, in order; real tokens.
    """

    seconds: Sequence[float]
    tokens: Sequence[int]

    @property
    def median(self) -> float:
        """Seconds."""
        return statistics.median(self.seconds)

    @property
    def quartiles(self) -> tuple[float, float]:
        """Seconds: half of the steps are between the two."""
        if len(self.seconds) < 2:
            return self.median, self.median
        first, _, third = statistics.quantiles(self.seconds, n=4, method="inclusive")
        return first, third

    @property
    def tokens_per_step(self) -> float:
        """Mean number of real tokens."""
        return sum(self.tokens) / len(self.tokens)

    @property
    def tokens_per_second(self) -> float:
        """Of the median step."""
        return self.tokens_per_step / self.median


def take_steps(
    model: nn.Module,
    task: Task,
    steps: Iterator[Sequence[MicroBatch]],
    training: LoopConfig,
) -> Iterator[StepReport]:
    """The reports of steps with a new optimizer and a constant learning rate; `model` is on its device.

    Args:
        training: resolved (`runs.resolve.resolve_loop`).
    """
    optimizer = build_optimizer(model, training.betas, training.weight_decay)
    constant = training.model_copy(update={"schedule": "constant"})
    settings = loop_settings(constant, seed=0, steps=1, warmup_steps=0)
    if training.compile:
        compile_layers(model)
    return train(model, task, steps, optimizer=optimizer, settings=settings, first_step=0)


def time_in_turn(
    sides: Sequence[Iterator[StepReport]], steps: int, clock: Callable[[], float]
) -> list[StepTimes]:
    """Steps of all sides in turn, `steps` of each after `WARMUP_STEPS`; `clock` returns seconds."""
    times: list[tuple[list[float], list[int]]] = [([], []) for _ in sides]
    for number in range(WARMUP_STEPS + steps):
        for reports, (seconds, tokens) in zip(sides, times, strict=True):
            started = clock()
            report = next(reports)
            if number >= WARMUP_STEPS:
                seconds.append(clock() - started)
                tokens.append(report.tokens)
    return [StepTimes(*of_side) for of_side in times]


def time_steps(
    reports: Iterator[StepReport],
    device: torch.device,
    steps: int,
    seconds: float = float("inf"),
) -> StepTimes:
    """Take `WARMUP_STEPS`, then time up to `steps` more: at least one, and none begins after `seconds`
    (warm-up included). `reports` must be long enough."""
    begun = now(device)
    for _ in range(WARMUP_STEPS):
        next(reports)
        if now(device) - begun > seconds / 2:
            break
    times, tokens = [], []
    while len(times) < steps and (not times or now(device) - begun < seconds):
        started = now(device)
        tokens.append(next(reports).tokens)
        times.append(now(device) - started)
    return StepTimes(times, tokens)
