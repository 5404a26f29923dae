"""Rates and memory of GPUs from their data sheets, and a probe of a run's steps on this machine."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import torch
from torch import nn

from bertcli.advice.bench.timing import matmul_rate, take_steps, time_steps
from bertcli.batches.share import MicroBatch
from bertcli.config.run import DecidedLoop
from bertcli.objectives.base import Task
from bertcli.system.errors import UserError
from bertcli.system.hardware import Precision
from bertcli.system.memory import peak_memory

SHARE_OF_PEAK = 0.35
"""Share of a GPU's stated rate that training an encoder reaches, counted as in `model.architecture`; an
assumption. NVIDIA's own BERT-large reaches 45 % in fp16 on an A100 (580 sequences of 128 tokens a second;
DeepLearningExamples, PyTorch/LanguageModeling/BERT) with special kernels; plain code reaches less."""


@dataclass(frozen=True)
class KnownDevice:
    """A GPU, by its data sheet.

    Attributes:
        half: operations per second of dense 16-bit matrix products with fp32 sums.
        has_bf16: True if `half` holds for bf16 too; else it holds only for fp16.
        fp32: operations per second of fp32 products outside the tensor cores, torch's default.
        memory: bytes of memory.
        compared: what a run on this GPU took beside the calculation; empty if none was ever compared.
    """

    half: float
    has_bf16: bool
    fp32: float
    memory: float
    compared: str = ""

    @property
    def precision(self) -> Precision:
        """The value of `precision: auto` on this GPU."""
        return "bf16" if self.has_bf16 else "fp16"

    def rate(self, precision: Precision) -> float:
        """Operations per second; bf16 without hardware support is as fast as fp32."""
        return self.half if precision == "fp16" or (precision == "bf16" and self.has_bf16) else self.fp32


KNOWN_DEVICES = {
    "b200": KnownDevice(2250e12, True, 80e12, memory=180e9),
    "h200": KnownDevice(
        989e12,
        True,
        67e12,
        memory=141e9,
        compared="a compiled step of 256 rows of 128 tokens took 1.05 times as long (base), 4.8 times (mini)",
    ),
    "h100": KnownDevice(989e12, True, 67e12, memory=80e9),
    "a100-80gb": KnownDevice(312e12, True, 19.5e12, memory=80e9),
    "a100-40gb": KnownDevice(312e12, True, 19.5e12, memory=40e9),
    "l40s": KnownDevice(362e12, True, 91.6e12, memory=48e9),
    "l4": KnownDevice(121e12, True, 30.3e12, memory=24e9),
    "rtx4090": KnownDevice(165e12, True, 82.6e12, memory=24e9),
    "rtx3090": KnownDevice(71e12, True, 35.6e12, memory=24e9),
    "v100-16gb": KnownDevice(125e12, False, 15.7e12, memory=16e9),
    "t4": KnownDevice(65e12, False, 8.1e12, memory=16e9),
}
"""Data from NVIDIA's data sheets (for RTX cards, from the Ada and Ampere GA102 architecture papers): SXM
variants, rates without sparsity."""


def known_device(name: str) -> KnownDevice:
    """The device of this name. Raises `UserError` if it is not in the table."""
    try:
        return KNOWN_DEVICES[name.lower()]
    except KeyError:
        raise UserError(
            f"--device {name}: is unknown; give one of {', '.join(KNOWN_DEVICES)}, or leave "
            "it out to measure this machine"
        ) from None


SECONDS = 15.0
"""Time of the steps, so that the whole probe takes less than 20 s."""
_SHARE_OF_MATMUL = 0.5
"""Approximate share of a device's matmul rate that a step reaches; it decides the number of rows to try."""

MakeSteps = Callable[[int, int], Iterator[Sequence[MicroBatch]]]
"""A function: (rows per step, rows at once) -> steps of the run, more than the probe can take."""


@dataclass(frozen=True)
class Probe:
    """The result of a probe.

    Attributes:
        step_seconds: time of a full step of the run.
        tokens: number of real tokens in a full step.
        peak: most bytes that this process (on a GPU: torch) has held; None: the run's own micro-batches were
            too slow to try.
    """

    step_seconds: float
    tokens: float
    peak: int | None


def probe(
    model: nn.Module,
    task: Task,
    make_steps: MakeSteps,
    training: DecidedLoop,
    row_flops: float,
    seconds: float = SECONDS,
) -> Probe:
    """Take steps of the run; if they are slow, take steps of fewer micro-batches.

    A step of n micro-batches takes a + n b seconds; steps of one and of two micro-batches give a and b.

    Args:
        model: the model, on its device.
        training: the decided training section.
        row_flops: operations of a row of full length, forward and backward.
    """
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
