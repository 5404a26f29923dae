"""What a config says about a run before anything is measured: all that an estimate needs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import nn

from bertcli.config.loop import LoopConfig
from bertcli.hardware import auto_micro_batch_size
from bertcli.measure.devices import KnownDevice
from bertcli.measure.probe import MakeSteps
from bertcli.memory.need import StepSizes
from bertcli.model.architecture import Architecture
from bertcli.tasks.base import Task


@dataclass(frozen=True)
class Plan:
    """A run.

    Attributes:
        training: as in the config, `auto` not resolved.
        parameters: by part; `trained` of them have gradients and moments.
        length: most tokens of a row; `mean_length`: tokens of a labeled row, None if the rows are full.
        predicted: share of the tokens whose word is predicted.
        steps, tokens: of the full run; real tokens.
        heldout_tokens: read by all evaluations together.
        store_bytes: of the token store; 0 without one.
        kept: checkpoints that are kept; `models`: further folders, which hold weights only.
        build: builds the model, on the CPU.
        make_steps: steps of the run, or similar ones.
        given: assumptions, in words.
    """

    kind: str
    output_dir: str
    training: LoopConfig
    architecture: Architecture
    parameters: dict[str, int]
    trained: int
    length: int
    mean_length: float | None
    predicted: float
    steps: int
    tokens: float
    heldout_tokens: float
    store_bytes: float
    kept: int
    models: int
    task: Task
    build: Callable[[], nn.Module]
    make_steps: MakeSteps
    given: list[str]
    joint_rows: int | None = None
    """As in `runs.resolve.resolve_loop`."""


def resolve_for(plan: Plan, known: KnownDevice) -> LoopConfig:
    """The training section as `runs.resolve.resolve_loop` would decide it on another device."""
    training = plan.training
    precision = known.precision if training.precision == "auto" else training.precision
    rows = training.micro_batch_size
    if rows == "auto":
        sizes = StepSizes(
            rows=1,
            length=plan.length,
            predicted=plan.predicted,
            half=precision != "fp32",
            checkpointing=training.activation_checkpointing,
            on_cpu=False,
        )
        rows = auto_micro_batch_size(
            plan.architecture,
            sizes=sizes,
            batch_size=training.largest_batch,
            device=torch.device("cuda"),
            memory=known.memory,
        )
    decided = {"precision": precision, "micro_batch_size": min(rows, training.largest_batch)}
    return training.model_copy(update=decided | {"compile": training.compile is True})
