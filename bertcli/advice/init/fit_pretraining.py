"""Measured times of this machine, and the pretraining run that fits into a given time."""

import math
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from bertcli.advice.bench.plan import Plan, plan_pretraining
from bertcli.advice.bench.probe import KnownDevice, Probe, calculated, probe
from bertcli.advice.bench.timing import matmul_rate
from bertcli.advice.init.amount import Prepared
from bertcli.advice.init.written import Request
from bertcli.config import model as config_model
from bertcli.config.run import with_values
from bertcli.config.schema import PretrainConfig
from bertcli.families.family import FamilyName
from bertcli.model.architecture import training_flops
from bertcli.system.hardware import resolve_device, resolve_precision
from bertcli.system.terminal import Report
from bertcli.training.recipe import BATCH_SIZES

SECONDS = 4.0
"""Time of the steps of one measurement."""


def start_seconds(module: str) -> float:
    """The time that a new process takes to import a command's module."""
    begun = time.perf_counter()
    subprocess.run([sys.executable, "-P", "-c", f"import {module}"], check=True, capture_output=True)
    return time.perf_counter() - begun


PRESETS = tuple(reversed(config_model.PRESETS))
"""The presets, the largest first."""
LENGTHS = (128, 64, 32)
"""Row lengths in tokens; a run takes the longest that the text fills, at least the last."""
TOKENS_PER_WEIGHT = 5
"""Tokens that a run should read for each weight that a token is multiplied with; with fewer, a smaller model
learns more in the same time (`LOG.md`)."""
EVALUATIONS = 5
_READS = 50
"""Largest number of times that a run reads its text; in a longer run the model memorizes it."""
_PARAMETERS_PER_TOKEN = 4
"""Largest number of parameters per token of text; a larger model memorizes the text."""
_LARGEST_SHARE = 1.2
"""Upper limit of a step's rate (operations of `model.architecture`), as a share of the matmul rate."""
FLOPS_PER_WEIGHT = 6
"""Operations of a step for each weight and token: a product and a sum, once forward and twice backward."""
_LEAST_STEPS, _MOST_STEPS = 20, 10_000_000
_LONG_RUNS = ((256, 200_000), (512, 200_000), (1024, 200_000), (2048, None))
"""Pairs as in `BATCH_SIZES`, for runs that read more rows than auto's largest steps are good for. In as many
rows, steps of 2,048 reached a perplexity of 3.68, and steps of 256 one of 3.99 (Liu et al. 2019, table 3)."""


LEARNED: dict[float, dict[FamilyName, float]] = {
    5: {"modernbert": 3.54, "bert": 3.82},
    20: {"modernbert": 3.03, "bert": 3.27},
}
"""Minutes of two cores -> family -> held-out MLM loss of a micro model on the same novels, with the same
vocabulary and masks (docs/speedrun.md)."""


def family_of(request: Request) -> tuple[FamilyName, str]:
    """The family of a new model, and the reason: it is given, or its loss is the lowest in `LEARNED` after
    the number of minutes next to the given one."""
    if request.family is not None:
        return request.family, "given with --family"
    nearest = min(LEARNED, key=lambda each: abs(math.log(each / request.minutes)))
    losses = LEARNED[nearest]
    family = min(losses, key=lambda each: losses[each])
    return family, (
        f"learns most: after {nearest:g} minutes of novels its loss was {losses[family]:.2f}, that of bert "
        f"{losses['bert']:.2f}; or bert, for next sentences and for programs that read no other"
    )


@dataclass(frozen=True)
class PretrainingFit:
    """The run that fits into the time.

    Attributes:
        preset: the preset of the model; None: the model is given.
        seconds: time of all steps and evaluations.
        tokens: number of tokens that all steps read.
        reads: number of times that the text is read.
        is_enough: True if each weight of the model gets `TOKENS_PER_WEIGHT`.
        ends_early: True if there is so little text that the run ends before its time.
    """

    preset: str | None
    max_length: int
    steps: int
    batch_size: int
    seconds: float
    tokens: float
    reads: float
    is_enough: bool
    ends_early: bool
    speed: Probe

    @property
    def rows_per_second(self) -> float:
        """Number of full rows per second."""
        return self.batch_size / self.speed.seconds


def fit_pretraining(
    prepared: Prepared, seconds: float, longest: float, report: Report, known: KnownDevice | None = None
) -> PretrainingFit:
    """The run of the largest preset whose weights get `TOKENS_PER_WEIGHT` in the time, else of the smallest.

    The presets that may fit are measured or calculated, from the largest to the smallest.

    Args:
        seconds: time for steps and evaluations.
        longest: largest number of tokens in a row that the text, or a given model, can fill.
        report: a function called with a line for each of these.
        known: the device for which steps are calculated; None: they are measured on this machine.
    """
    length = next((length for length in LENGTHS if length <= longest), LENGTHS[-1])
    presets = PRESETS if prepared.config.model.init_from is None else [None]
    if known is None:
        device = resolve_device(prepared.config.training.device)
        precision = resolve_precision(prepared.config.training.precision, device)
        rate, speed_of = matmul_rate(device, precision, seconds=0.2), partial(probe, seconds=SECONDS)
    else:
        rate, speed_of = known.rate(known.precision), partial(calculated, known=known)

    def tried(preset: str | None) -> PretrainingFit:
        fit = _fit(prepared, preset, length, seconds=seconds, speed_of=speed_of)
        training = fit.speed.training
        how, where = ("measured", f" on {training.device}") if known is None else ("calculated", "")
        report(
            f"{how}: {preset or 'the model'} with rows of {length} tokens, {fit.rows_per_second:,.0f} "
            f"rows/s{where} in {training.precision}"
        )
        return fit

    for preset in presets[:-1]:
        plan = _plan(prepared, preset, length, batch_size=BATCH_SIZES[0][0])
        if _may_fit(plan, prepared, seconds, rate=rate):
            fit = tried(preset)
            if fit.is_enough or fit.ends_early:
                return fit
    return tried(presets[-1])


def _may_fit(plan: Plan, prepared: Prepared, seconds: float, rate: float) -> bool:
    """True if the text is enough for the model, and a perfect program could read enough of it in the time."""
    if sum(plan.parameters.values()) > _PARAMETERS_PER_TOKEN * prepared.tokens:
        return False
    weights = _weights(plan)
    tokens = _LARGEST_SHARE * rate * seconds / (FLOPS_PER_WEIGHT * weights)
    return tokens >= TOKENS_PER_WEIGHT * weights


def _weights(plan: Plan) -> float:
    """The number of weights that a token is multiplied with, on average."""
    return training_flops(plan.architecture, plan.length, plan.predicted) / FLOPS_PER_WEIGHT


def _plan(prepared: Prepared, preset: str | None, length: int, batch_size: int) -> Plan:
    """The plan of steps of full rows of this length."""
    config: PretrainConfig = prepared.config
    model = {} if preset is None else {"preset": preset}
    training = {"batch_size": batch_size, "steps": _MOST_STEPS}
    sections = {"model": model, "data": {"max_length": length}, "training": training}
    return plan_pretraining(with_values(config, sections), lambda line: None)


def _fit(
    prepared: Prepared, preset: str | None, length: int, seconds: float, speed_of: Callable[[Plan], Probe]
) -> PretrainingFit:
    """The steps that fit, with a batch size for so many."""
    for batch_size, below in (*BATCH_SIZES[:-1], *_LONG_RUNS):
        plan = _plan(prepared, preset, length, batch_size=batch_size)
        speed = speed_of(plan)
        batches = min(prepared.config.evaluation.batches, prepared.heldout_tokens / speed.tokens)
        # A forward pass is a third of a step.
        besides = speed.first_seconds + EVALUATIONS * batches / 3 * speed.seconds
        by_time = (seconds - besides) / speed.seconds
        by_text = _READS * prepared.tokens / speed.tokens
        steps = _rounded(max(_LEAST_STEPS, int(min(by_time, by_text))))
        if below is None or steps < below:
            tokens = steps * speed.tokens
            return PretrainingFit(
                preset,
                length,
                steps,
                batch_size=batch_size,
                seconds=besides + steps * speed.seconds,
                tokens=tokens,
                reads=tokens / max(1.0, prepared.tokens),
                is_enough=tokens >= TOKENS_PER_WEIGHT * _weights(plan),
                ends_early=by_text < 0.9 * by_time,
                speed=speed,
            )
    raise AssertionError("unreachable: the last batch size is for any number of steps")


def _rounded(steps: int) -> int:
    """The number of steps, rounded down to three digits."""
    unit = 10 ** max(0, len(str(steps)) - 3)
    return steps // unit * unit
