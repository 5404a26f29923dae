"""Labeled rows, a model, a machine and minutes -> how often the rows are read."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass

from bertcli.config.finetune import FinetuneConfig
from bertcli.measure.plan_finetuning import plan_finetuning
from bertcli.runs.recipe import update_sections
from bertcli.start.speed import StepSpeed, start_seconds, step_speed

SECONDS = 8.0
"""Of steps that are measured: rows differ in length."""
_EPOCHS = ((1_000, 20), (10_000, 10))
"""(fewer rows than this, most epochs): with few rows more epochs still help (Mosbach et al. 2021)."""
_USUAL_EPOCHS = 3


@dataclass(frozen=True)
class FinetuningFit:
    """What fits.

    Attributes:
        seconds: of the whole command.
        epoch_seconds: of the whole command with a single epoch.
        ends_early: the run takes less than its time, with the most epochs for so many rows.
    """

    epochs: float
    seconds: float
    epoch_seconds: float
    ends_early: bool
    rows_per_second: float
    speed: StepSpeed


def fit_finetuning(config: FinetuneConfig, seconds: float) -> FinetuningFit:
    """The epochs that fit. Raises `UserError` as `measure.plan_finetuning.plan_finetuning`.

    Args:
        seconds: of the whole command: start, reading, steps, evaluations.
    """
    fixed = start_seconds("bertcli.runs.finetuning")
    begun = time.perf_counter()
    plan = plan_finetuning(update_sections(config, {"training": {"epochs": 1.0}}), lambda line: None)
    fixed += time.perf_counter() - begun
    speed = step_speed(plan, SECONDS)
    epoch = plan.steps * speed.seconds
    forward = speed.seconds / 3  # of a step: the pass without gradients
    evaluation = forward * plan.heldout_tokens / speed.tokens
    rows = plan.steps * config.training.batch_size
    most = next((epochs for below, epochs in _EPOCHS if rows < below), _USUAL_EPOCHS)

    def seconds_of(epochs: float) -> float:
        return fixed + speed.first_seconds + epochs * epoch + math.ceil(epochs) * evaluation

    epochs = next((each for each in _descending(most) if seconds_of(each) <= seconds), 0.01)
    return FinetuningFit(
        epochs,
        seconds_of(epochs),
        epoch_seconds=seconds_of(1.0),
        ends_early=epochs == most and seconds_of(epochs) < 0.75 * seconds,
        rows_per_second=config.training.batch_size / speed.seconds,
        speed=speed,
    )


def _descending(most: int) -> list[float]:
    """Halves down to two epochs, then tenths, then hundredths of one."""
    halves = [number / 2 for number in range(2 * most, 4, -1)]
    return (
        halves
        + [number / 10 for number in range(20, 10, -1)]
        + [number / 100 for number in range(100, 0, -1)]
    )
