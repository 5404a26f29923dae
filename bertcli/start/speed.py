"""Measured on this machine: how long a command takes to start, and how long a step takes."""

from __future__ import annotations

import subprocess
import sys
import time
from dataclasses import dataclass

import torch

from bertcli.measure.plan import Plan
from bertcli.measure.probe import probe
from bertcli.model.flops import training_flops
from bertcli.runs.resolve import resolve_loop

SECONDS = 4.0
"""Of steps, for one measurement."""


@dataclass(frozen=True)
class StepSpeed:
    """A step.

    Attributes:
        first_seconds: what the first steps took longer: memory, kernels, compiling.
        tokens: real ones of a step.
    """

    seconds: float
    first_seconds: float
    tokens: float
    device: str
    precision: str


def start_seconds(module: str) -> float:
    """How long a new process takes to import a command's module."""
    begun = time.perf_counter()
    subprocess.run([sys.executable, "-P", "-c", f"import {module}"], check=True, capture_output=True)
    return time.perf_counter() - begun


def step_speed(plan: Plan, seconds: float = SECONDS) -> StepSpeed:
    """Take steps of a run for some seconds."""
    training = resolve_loop(
        plan.training,
        plan.architecture,
        plan.length,
        tokens=plan.tokens,
        predicted=plan.predicted,
        mean_length=plan.mean_length,
    )
    assert training.precision != "auto"
    model = plan.build().to(torch.device(training.device))
    flops = training_flops(plan.architecture, plan.length, plan.predicted) * plan.length
    begun = time.perf_counter()
    seen = probe(model, plan.task, plan.make_steps, training=training, row_flops=flops, seconds=seconds)
    took = time.perf_counter() - begun
    return StepSpeed(
        seen.step_seconds,
        max(0.0, took - seconds) if training.compile else 0.0,
        seen.tokens,
        device=training.device,
        precision=training.precision,
    )
