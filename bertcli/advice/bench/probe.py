"""The speed of a run's steps: probed on this machine, or calculated for a GPU of another one."""

import time
from dataclasses import dataclass

import torch

from bertcli.advice.bench.plan import Plan, decide_here
from bertcli.advice.bench.timing import matmul_rate, take_steps, time_steps
from bertcli.config.run import DecidedLoop, decided_loop
from bertcli.model.architecture import training_flops
from bertcli.system.errors import UserError
from bertcli.system.hardware import Precision, fast_rows, fitting_rows
from bertcli.system.memory import StepSizes, peak_memory
from bertcli.training.wrapping import launch_seconds

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


SHARE_OF_PEAK = 0.35
"""Share of a GPU's stated rate that training an encoder reaches, counted as in `model.architecture`; an
assumption. NVIDIA's own BERT-large reaches 45 % in fp16 on an A100 (580 sequences of 128 tokens a second;
DeepLearningExamples, PyTorch/LanguageModeling/BERT) with special kernels; plain code reaches less."""


@dataclass(frozen=True)
class KnownDevice:
    """A GPU, by its data sheet.

    Attributes:
        half: operations per second of dense 16-bit matrix products with fp32 sums: in fp16 and `precision`.
        precision: the value of `precision: auto` on this GPU; bf16 if the hardware supports it.
        fp32: operations per second of fp32 products outside the tensor cores, torch's default.
        memory: bytes of memory.
        compared: what a run on this GPU took beside the calculation; empty if none was ever compared.
    """

    half: float
    precision: Precision
    fp32: float
    memory: float
    compared: str = ""

    @property
    def comparison(self) -> str:
        """`compared`, or that there was no comparison, in words."""
        return self.compared or "no run on this GPU was ever compared with such figures"

    def rate(self, precision: Precision) -> float:
        """Operations per second; bf16 without hardware support is as fast as fp32."""
        return self.half if precision in ("fp16", self.precision) else self.fp32


_ON_H200 = "a compiled step of 256 rows of 128 tokens took 1.05 times as long (base), 4.8 times (mini)"
KNOWN_DEVICES = {
    "b200": KnownDevice(2250e12, "bf16", 80e12, memory=180e9),
    "h200": KnownDevice(989e12, "bf16", 67e12, memory=141e9, compared=_ON_H200),
    "h100": KnownDevice(989e12, "bf16", 67e12, memory=80e9),
    "a100-80gb": KnownDevice(312e12, "bf16", 19.5e12, memory=80e9),
    "a100-40gb": KnownDevice(312e12, "bf16", 19.5e12, memory=40e9),
    "l40s": KnownDevice(362e12, "bf16", 91.6e12, memory=48e9),
    "l4": KnownDevice(121e12, "bf16", 30.3e12, memory=24e9),
    "rtx4090": KnownDevice(165e12, "bf16", 82.6e12, memory=24e9),
    "rtx3090": KnownDevice(71e12, "bf16", 35.6e12, memory=24e9),
    "v100-16gb": KnownDevice(125e12, "fp16", 15.7e12, memory=16e9),
    "t4": KnownDevice(65e12, "fp16", 8.1e12, memory=16e9),
}
"""Data from NVIDIA's data sheets (for RTX cards, from the Ada and Ampere GA102 architecture papers): SXM
variants, rates without sparsity."""


def known_device(name: str) -> KnownDevice:
    """The device of this name. Raises `UserError` if it is not in the table."""
    if name.lower() not in KNOWN_DEVICES:
        raise UserError(
            f"--device {name}: is unknown; give one of {', '.join(KNOWN_DEVICES)}, or leave "
            "it out to measure this machine"
        )
    return KNOWN_DEVICES[name.lower()]


def calculated(plan: Plan, known: KnownDevice) -> Probe:
    """A probe of the plan's steps on another device, as `SHARE_OF_PEAK` says, and no micro-batch faster than
    its kernels can be launched."""
    training = _decide_for(plan, known)
    at_once, tokens = training.micro_batch_size * plan.length, training.largest_batch * plan.length
    flops = training_flops(plan.architecture, plan.length, plan.predicted)
    by_products = flops * at_once / (SHARE_OF_PEAK * known.rate(training.precision))
    seconds = max(by_products, launch_seconds(plan.architecture.layers)) * tokens / at_once
    return Probe(training, seconds, first_seconds=0.0, tokens=tokens)


def _decide_for(plan: Plan, known: KnownDevice) -> DecidedLoop:
    """The training section that `plan.decide_here` would give on another device."""
    training = plan.training
    precision = known.precision if training.precision == "auto" else training.precision
    rows = training.micro_batch_size
    if rows == "auto":
        sizes, device = step_sizes(plan, precision, rows=1, on_cpu=False), torch.device("cuda")
        at_most = min(training.largest_batch, fast_rows(sizes, mean_length=None))
        rows = fitting_rows(plan.architecture, sizes, at_most, device=device, memory=known.memory)
    decided = {"precision": precision, "micro_batch_size": min(rows, training.largest_batch)}
    return decided_loop(training, decided | {"compile": training.compile is True})


def step_sizes(plan: Plan, precision: Precision, rows: int, on_cpu: bool) -> StepSizes:
    """The sizes of the plan's steps, with so many rows at once."""
    return StepSizes(
        rows=rows,
        length=plan.length,
        predicted=plan.predicted,
        half=precision != "fp32",
        checkpointing=plan.training.activation_checkpointing,
        on_cpu=on_cpu,
    )
