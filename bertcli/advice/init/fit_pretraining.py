"""Measured times of this machine, and the pretraining run that fits into a given time."""

import subprocess
import sys
import time
from bisect import bisect_right
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Literal

from bertcli.advice.bench.devices import KnownDevice, calculated
from bertcli.advice.bench.plan import Plan, plan_pretraining
from bertcli.advice.bench.probe import Probe, probe
from bertcli.advice.bench.timing import matmul_rate
from bertcli.advice.init.amount import Prepared
from bertcli.config.run import with_values
from bertcli.config.schema import PretrainConfig
from bertcli.model.architecture import training_flops
from bertcli.system.hardware import resolve_device, resolve_precision
from bertcli.system.terminal import Report
from bertcli.training.recipe import BATCH_SIZES, ROWS_TO_LOOK_AROUND, first_short_steps

SECONDS = 4.0
"""Time of the steps of one measurement."""


def start_seconds(module: str) -> float:
    """The time that a new process takes to import a command's module."""
    begun = time.perf_counter()
    subprocess.run([sys.executable, "-P", "-c", f"import {module}"], check=True, capture_output=True)
    return time.perf_counter() - begun


PRESETS = ("large", "base", "medium", "small", "mini", "tiny")
LENGTHS = (128, 64, 32)
"""Row lengths in tokens; the last one is only for text that does not fill longer rows."""
ROWS = 2 * ROWS_TO_LOOK_AROUND
"""Rows that a run should read, so that its model uses context for half of the run."""
EVALUATIONS = 5
_READS = 50
"""Largest number of times that a run reads its text; in a longer run the model memorizes it."""
_PARAMETERS_PER_TOKEN = 4
"""Largest number of parameters per token of text; a larger model memorizes the text."""
_LARGEST_SHARE = 1.2
"""Upper limit of a step's rate (operations of `model.architecture`), as a share of the matmul rate."""
_LEAST_STEPS, _MOST_STEPS = 20, 10_000_000
AUTO_ROWS = BATCH_SIZES[-1][0]
"""The most rows per step that `batch_size: auto` takes; a run with more names them."""
_LONG_RUNS = ((256, 200_000), (512, 200_000), (1024, 200_000), (2048, None))
"""Pairs as in `BATCH_SIZES`, for runs that read more rows than auto's largest steps are good for. In as many
rows, steps of 2,048 reached a perplexity of 3.68, and steps of 256 one of 3.99 (Liu et al. 2019, table 3)."""


@dataclass(frozen=True)
class PretrainingFit:
    """The run that fits into the time.

    Attributes:
        preset: the preset of the model; None: the model is given.
        seconds: time of all steps and evaluations.
        reads: number of times that the text is read.
        ends_early: True if there is so little text that the run ends before its time.
    """

    preset: str | None
    max_length: int
    steps: int
    batch_size: int
    seconds: float
    reads: float
    ends_early: bool
    speed: Probe

    @property
    def rows(self) -> int:
        """Number of rows of all steps."""
        return self.steps * self.batch_size

    @property
    def rows_per_second(self) -> float:
        """Number of full rows per second."""
        return self.batch_size / self.speed.seconds


def fit_pretraining(
    prepared: Prepared, seconds: float, longest: float, report: Report, known: KnownDevice | None = None
) -> PretrainingFit:
    """The largest preset and row length with which a run reads `ROWS` rows in its time, else the smallest.

    The candidates that may fit are measured or calculated, from the largest to the smallest.

    Args:
        seconds: time for steps and evaluations.
        longest: largest number of tokens in a row that the text, or a given model, can fill.
        report: a function called with a line for each of these.
        known: the device for which steps are calculated; None: they are measured on this machine.
    """
    lengths = [length for length in LENGTHS[:-1] if length <= longest] or [LENGTHS[-1]]
    is_given = prepared.config.model.init_from is not None
    candidates = [(preset, length) for preset in ([None] if is_given else PRESETS) for length in lengths]
    if known is None:
        device = resolve_device(prepared.config.training.device)
        precision = resolve_precision(prepared.config.training.precision, device)
        rate, speed_of = matmul_rate(device, precision, seconds=0.2), partial(probe, seconds=SECONDS)
    else:
        rate, speed_of = known.rate(known.precision), partial(calculated, known=known)

    def tried(preset: str | None, length: int) -> PretrainingFit:
        fit = _fit(prepared, preset, length, seconds=seconds, speed_of=speed_of)
        training = fit.speed.training
        how, where = ("measured", f" on {training.device}") if known is None else ("calculated", "")
        report(
            f"{how}: {preset or 'the model'} with rows of {length} tokens, {fit.rows_per_second:,.0f} "
            f"rows/s{where} in {training.precision}"
        )
        return fit

    for preset, length in candidates[:-1]:
        plan = _plan(prepared, preset, length, batch_size=BATCH_SIZES[0][0])
        if _may_fit(plan, prepared, seconds, rate=rate):
            fit = tried(preset, length)
            if fit.rows >= ROWS or fit.ends_early:
                return fit
    return tried(*candidates[-1])


def _may_fit(plan: Plan, prepared: Prepared, seconds: float, rate: float) -> bool:
    """True if the text is enough for the model, and a perfect program could read `ROWS` rows in the time."""
    if sum(plan.parameters.values()) > _PARAMETERS_PER_TOKEN * prepared.tokens:
        return False
    row_flops = training_flops(plan.architecture, plan.length, plan.predicted) * plan.length
    return _LARGEST_SHARE * rate * seconds / row_flops >= ROWS


def _plan(prepared: Prepared, preset: str | None, length: int, batch_size: int) -> Plan:
    """The plan of steps of full rows of this length."""
    config: PretrainConfig = prepared.config
    model = {} if preset is None else {"preset": preset}
    data = {"max_length": length, "short_steps": 0}
    training = {"batch_size": batch_size, "steps": _MOST_STEPS}
    return plan_pretraining(
        with_values(config, {"model": model, "data": data, "training": training}), lambda line: None
    )


def _fit(
    prepared: Prepared, preset: str | None, length: int, seconds: float, speed_of: Callable[[Plan], Probe]
) -> PretrainingFit:
    """The steps that fit, with the batch size and first short rows that `training.recipe` would decide."""
    for batch_size, below in (*BATCH_SIZES[:-1], *_LONG_RUNS):
        run = _run_of(prepared, preset, length, batch_size=batch_size, speed_of=speed_of)
        by_time = bisect_right(range(_MOST_STEPS), seconds, key=run.seconds)
        by_text = bisect_right(range(_MOST_STEPS), _READS * prepared.tokens, key=run.tokens)
        steps = _rounded(max(_LEAST_STEPS, min(by_time, by_text) - 1))
        if below is None or steps < below:
            return PretrainingFit(
                preset,
                length,
                steps,
                batch_size=batch_size,
                seconds=run.seconds(steps),
                reads=run.tokens(steps) / max(1.0, prepared.tokens),
                ends_early=by_text < 0.9 * by_time,
                speed=run.full,
            )
    raise AssertionError("unreachable: the last batch size is for any number of steps")


@dataclass(frozen=True)
class _Run:
    """A run whose steps were measured, or calculated.

    Attributes:
        full, short: speed of steps with full rows, and of those with short rows at the start; None: no such.
        evaluations: seconds of all evaluations.
    """

    batch_size: int
    full: Probe
    short: Probe | None
    evaluations: float

    def seconds(self, steps: int) -> float:
        """Time of so many steps, with the evaluations."""
        return self.full.first_seconds + self._sum(steps, "seconds") + self.evaluations

    def tokens(self, steps: int) -> float:
        """Number of real tokens in so many steps."""
        return self._sum(steps, "tokens")

    def _sum(self, steps: int, what: Literal["seconds", "tokens"]) -> float:
        full = getattr(self.full, what)
        if self.short is None:
            return steps * full
        first = first_short_steps(steps, self.batch_size)
        return first * getattr(self.short, what) + (steps - first) * full


def _run_of(
    prepared: Prepared, preset: str | None, length: int, batch_size: int, speed_of: Callable[[Plan], Probe]
) -> _Run:
    config, short = prepared.config, None
    full = speed_of(_plan(prepared, preset, length, batch_size=batch_size))
    if config.model.init_from is None and length >= 2 * config.data.short_length:
        short = speed_of(_plan(prepared, preset, config.data.short_length, batch_size=batch_size))
    batches = min(config.evaluation.batches, prepared.heldout_tokens / full.tokens)
    # A forward pass is a third of a step.
    return _Run(batch_size, full, short, evaluations=EVALUATIONS * batches / 3 * full.seconds)


def _rounded(steps: int) -> int:
    """The number of steps, rounded down to three digits."""
    unit = 10 ** max(0, len(str(steps)) - 3)
    return steps // unit * unit
