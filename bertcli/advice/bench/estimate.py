"""An estimate of a run's time, memory and disk, from its config and a short probe on this machine."""

import shutil
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch

from bertcli.advice.bench.plan import Plan, plan_finetuning, plan_pretraining
from bertcli.advice.bench.probe import Probe, probe
from bertcli.advice.bench.timing import device_name
from bertcli.config.finetune import FinetuneConfig
from bertcli.config.run import DecidedLoop, decided_loop
from bertcli.config.schema import PretrainConfig
from bertcli.model.architecture import training_flops
from bertcli.system.errors import UserError
from bertcli.system.hardware import Precision, fast_rows, fitting_rows, resolve_device
from bertcli.system.memory import CHECKPOINT_BYTES, FP32, StepSizes, free_memory, resident_memory, step_memory
from bertcli.training.wrapping import launch_seconds

KERNELS = {"cpu": 100e6, "cuda": 500e6}
"""Bytes that torch loads at the first step and keeps; on a GPU, CUDA's context."""
_MAPPED = 1 << 16
"""Bytes of the store that become resident when a row is read."""
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


def estimate(config: PretrainConfig | FinetuneConfig, device: str | None) -> dict[str, Any]:
    """Estimate time, memory and disk of a run.

    Args:
        device: the name of one of `KNOWN_DEVICES`, for which everything is calculated; None: the config's own
            device, on which some seconds of steps are measured.

    Returns:
        what, kind, device, calculated, compared (false if the figures of this device never met a
        measurement), precision, micro_batch_size; parameters (by part, and total);
        flops_per_token (forward and backward); memory_mb (by part, and total); disk_mb (by part, and total);
        steps, tokens, tokens_per_s, hours; given, warnings (lists of lines).

    Raises:
        UserError: the config cannot run, or the device is unknown.
    """
    known = None if device is None else known_device(device)
    is_labeled = isinstance(config, FinetuneConfig)
    plan = plan_finetuning(config) if is_labeled else plan_pretraining(config)
    flops, tokens = training_flops(plan.architecture, plan.length, plan.predicted), plan.tokens
    given = list(plan.given)
    if known is None:
        where = resolve_device(plan.training.device)
        device, before = device_name(where), resident_memory(where)
        limit = free_memory(where) + before
        seen = probe(plan)
        training, tokens_per_s = seen.training, seen.tokens / seen.seconds
        needed = _memory(plan, training, where.type == "cpu", before=before, seen=seen)
        if not is_labeled:  # times the share of real tokens in full rows
            tokens *= seen.tokens / (training.largest_batch * plan.length)
    else:
        training, limit = _decide_for(plan, known), known.memory
        at_once = training.micro_batch_size * plan.length
        seconds = flops * at_once / (SHARE_OF_PEAK * known.rate(training.precision))
        least = launch_seconds(plan.architecture.layers)
        tokens_per_s = at_once / max(seconds, least)
        needed = _memory(plan, training, on_cpu=False)
        given += [
            f"calculated: {SHARE_OF_PEAK:.0%} of the rate in the data sheet of {device}, and no micro-batch "
            f"faster than its kernels can be launched ({1e3 * least:.1f} ms)",
            f"{device}: {known.compared or 'no run on this GPU was ever compared with such figures'}",
        ]
    disk = _disk(plan)
    # An evaluation has only a forward pass, a third of a step.
    hours = (tokens + plan.heldout_tokens / 3) / tokens_per_s / 3600
    return {
        "what": "estimate",
        "kind": "fine-tuning" if is_labeled else "pretraining",
        "device": device,
        "calculated": known is not None,
        "compared": known is None or bool(known.compared),
        "precision": training.precision,
        "micro_batch_size": training.micro_batch_size,
        "parameters": plan.parameters | {"total": sum(plan.parameters.values())},
        "flops_per_token": flops,
        "memory_mb": _megabytes(needed),
        "disk_mb": _megabytes(disk),
        "steps": plan.steps,
        "tokens": round(tokens),
        "tokens_per_s": tokens_per_s,
        "hours": hours,
        "given": given,
        "warnings": list(_warnings(needed, limit, disk, output=Path(config.output_dir))),
    }


def _decide_for(plan: Plan, known: KnownDevice) -> DecidedLoop:
    """The training section that `plan.decide_here` would give on another device."""
    training = plan.training
    precision = known.precision if training.precision == "auto" else training.precision
    rows = training.micro_batch_size
    if rows == "auto":
        sizes, device = _step_sizes(plan, precision, rows=1, on_cpu=False), torch.device("cuda")
        at_most = min(training.largest_batch, fast_rows(sizes, mean_length=None))
        rows = fitting_rows(plan.architecture, sizes, at_most, device=device, memory=known.memory)
    decided = {"precision": precision, "micro_batch_size": min(rows, training.largest_batch)}
    return decided_loop(training, decided | {"compile": training.compile is True})


def _step_sizes(plan: Plan, precision: Precision, rows: int, on_cpu: bool) -> StepSizes:
    return StepSizes(
        rows=rows,
        length=plan.length,
        predicted=plan.predicted,
        half=precision != "fp32",
        checkpointing=plan.training.activation_checkpointing,
        on_cpu=on_cpu,
    )


def _memory(
    plan: Plan, training: DecidedLoop, on_cpu: bool, before: float = 0.0, seen: Probe | None = None
) -> dict[str, float]:
    """Part -> bytes of memory.

    If the probe took the run's own micro-batches, `other` is the memory that it held beyond the calculation.
    If it held less, the parts that are estimated too high are reduced by the difference.
    """
    sizes = _step_sizes(plan, training.precision, training.micro_batch_size, on_cpu=on_cpu)
    parameters = sum(plan.parameters.values())
    parts = asdict(step_memory(plan.architecture, parameters, plan.trained, sizes=sizes))
    parts["process"] = before + KERNELS["cpu" if on_cpu else "cuda"]
    if seen is not None and seen.peak is not None:
        context = 0.0 if on_cpu else KERNELS["cuda"]
        besides = seen.peak + context - sum(parts.values())
        parts["other"], too_much = max(besides, 0.0), max(-besides, 0.0)
        for name in ("activations", "process"):
            less = min(too_much, parts[name])
            parts[name], too_much = parts[name] - less, too_much - less
    if on_cpu:
        parts["checkpoint_copy"] = _checkpoint_bytes(plan)
        parts["store"] = min(plan.store_bytes, plan.steps * training.largest_batch * _MAPPED)
    return parts


def _checkpoint_bytes(plan: Plan) -> float:
    return FP32 * sum(plan.parameters.values()) + (CHECKPOINT_BYTES - FP32) * plan.trained


def _disk(plan: Plan) -> dict[str, float]:
    """Part -> bytes on disk. A new checkpoint is written before an old one is deleted."""
    return {
        "store": plan.store_bytes,
        "checkpoints": (plan.kept + 1) * _checkpoint_bytes(plan),
        "models": plan.models * FP32 * sum(plan.parameters.values()),
    }


def _megabytes(parts: dict[str, float]) -> dict[str, float]:
    return {name: size / 1e6 for name, size in parts.items()} | {"total": sum(parts.values()) / 1e6}


def _warnings(parts: dict[str, float], limit: float, disk: dict[str, float], output: Path) -> Iterator[str]:
    needed = sum(parts.values()) - parts.get("store", 0.0)  # the system can take back its pages
    if needed > limit:
        yield (
            f"the run needs about {needed / 1e9:.1f} GB of memory, and {limit / 1e9:.1f} GB are free: lower "
            "training.micro_batch_size (or set it to auto), or set training.activation_checkpointing: true"
        )
    folders = (output.absolute(), *output.absolute().parents)
    free = shutil.disk_usage(next(folder for folder in folders if folder.exists())).free
    if sum(disk.values()) > free:
        yield (
            f"the run writes about {sum(disk.values()) / 1e9:.1f} GB, and {free / 1e9:.1f} GB are free on "
            "the disk of output_dir: lower checkpoint.keep_last, or name another output_dir"
        )
