"""An estimate of a run's time, memory and disk, from its config and a short probe on this machine."""

import shutil
from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch

from bertcli.advice.bench.plan import Plan, decide_for, decide_here, plan_finetuning
from bertcli.advice.bench.plan_pretraining import plan_pretraining
from bertcli.advice.bench.probe import SHARE_OF_PEAK, KnownDevice, Probe, known_device, probe
from bertcli.advice.bench.timing import device_name
from bertcli.config.finetune import FinetuneConfig
from bertcli.config.run import DecidedLoop
from bertcli.config.schema import PretrainConfig
from bertcli.model.architecture import training_flops
from bertcli.system.memory import CHECKPOINT_BYTES, FP32, StepSizes, free_memory, resident_memory, step_memory
from bertcli.training.wrapping import launch_seconds

KERNELS = {"cpu": 100e6, "cuda": 500e6}
"""Bytes that torch loads at the first step and keeps; on a GPU, CUDA's context."""
_MAPPED = 1 << 16
"""Bytes of the store that become resident when a row is read."""


def estimate(config: PretrainConfig | FinetuneConfig, device: str | None) -> dict[str, Any]:
    """Estimate time, memory and disk of a run.

    Args:
        device: the name of a device in `advice.bench.probe`, for which everything is calculated; None: the
            config's own device, on which some seconds of steps are measured.

    Returns:
        what, kind, device, calculated, compared (false if the figures of this device never met a
        measurement), precision, micro_batch_size; parameters (by part, and total);
        flops_per_token (forward and backward); memory_mb (by part, and total); disk_mb (by part, and total);
        steps, tokens, tokens_per_s, hours; given, warnings (lists of lines).

    Raises:
        UserError: the config cannot run, or the device is unknown.
    """
    known = None if device is None else known_device(device)
    plan = plan_finetuning(config) if isinstance(config, FinetuneConfig) else plan_pretraining(config)
    flops = training_flops(plan.architecture, plan.length, plan.predicted)
    given = list(plan.given)
    if known is None:
        training = decide_here(plan)
        where = torch.device(training.device)
        free, before = free_memory(where), resident_memory(where)
        model = plan.build().to(where)
        seen = probe(model, plan.task, plan.make_steps, training=training, row_flops=flops * plan.length)
        memory = _memory(plan, training, where.type == "cpu", before=before, seen=seen)
        tokens_per_s = seen.tokens / seen.step_seconds
        tokens = plan.tokens
        if plan.kind == "pretraining":  # times the share of real tokens in full rows
            tokens *= seen.tokens / (training.largest_batch * plan.length)
        limit = free + before
    else:
        assert device is not None
        training, tokens, limit = decide_for(plan, known), plan.tokens, known.memory
        at_once = training.micro_batch_size * plan.length
        seconds = flops * at_once / (SHARE_OF_PEAK * known.rate(training.precision))
        least = launch_seconds(plan.architecture.layers)
        tokens_per_s = at_once / max(seconds, least)
        memory = _memory(plan, training, on_cpu=False, before=0.0, seen=None)
        given += _how_calculated(device, known, least)
    disk = _disk(plan)
    # An evaluation has only a forward pass, a third of a step.
    hours = (tokens + plan.heldout_tokens / 3) / tokens_per_s / 3600
    return {
        "what": "estimate",
        "kind": plan.kind,
        "device": device_name(torch.device(training.device)) if known is None else device,
        "calculated": known is not None,
        "compared": known is None or bool(known.compared),
        "precision": training.precision,
        "micro_batch_size": training.micro_batch_size,
        "parameters": plan.parameters | {"total": sum(plan.parameters.values())},
        "flops_per_token": flops,
        "memory_mb": _megabytes(memory),
        "disk_mb": _megabytes(disk),
        "steps": plan.steps,
        "tokens": round(tokens),
        "tokens_per_s": tokens_per_s,
        "hours": hours,
        "given": given,
        "warnings": _warnings(plan, memory, limit, disk=disk),
    }


def _how_calculated(device: str, known: KnownDevice, least: float) -> list[str]:
    """The lines that say how a time was calculated; `least`: the least seconds of a micro-batch."""
    return [
        f"calculated: {SHARE_OF_PEAK:.0%} of the rate in the data sheet of {device}, and no micro-batch "
        f"faster than its kernels can be launched ({1e3 * least:.1f} ms)",
        f"{device}: {known.compared or 'no run on this GPU was ever compared with such figures'}",
    ]


def _memory(
    plan: Plan, training: DecidedLoop, on_cpu: bool, before: float, seen: Probe | None
) -> dict[str, float]:
    """Part -> bytes of memory.

    If the probe took the run's own micro-batches, `other` is the memory that it held beyond the calculation.
    If it held less, the parts that are estimated too high are reduced by the difference.
    """
    sizes = StepSizes(
        rows=training.micro_batch_size,
        length=plan.length,
        predicted=plan.predicted,
        half=training.precision != "fp32",
        checkpointing=training.activation_checkpointing,
        on_cpu=on_cpu,
    )
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
        parts["checkpoint_copy"] = FP32 * parameters + (CHECKPOINT_BYTES - FP32) * plan.trained
        rows_read = plan.steps * training.largest_batch
        parts["store"] = min(plan.store_bytes, rows_read * _MAPPED)
    return parts


def _disk(plan: Plan) -> dict[str, float]:
    """Part -> bytes on disk. A new checkpoint is written before an old one is deleted."""
    weights = FP32 * sum(plan.parameters.values())
    checkpoint = weights + (CHECKPOINT_BYTES - FP32) * plan.trained
    return {
        "store": plan.store_bytes,
        "checkpoints": (plan.kept + 1) * checkpoint,
        "models": plan.models * weights,
    }


def _megabytes(parts: dict[str, float]) -> dict[str, float]:
    return {name: size / 1e6 for name, size in parts.items()} | {"total": sum(parts.values()) / 1e6}


def _warnings(plan: Plan, memory: dict[str, float], limit: float, disk: dict[str, float]) -> list[str]:
    warnings = []
    needed = sum(memory.values()) - memory.get("store", 0.0)  # the system can take back its pages
    if needed > limit:
        warnings.append(
            f"the run needs about {needed / 1e9:.1f} GB of memory, and {limit / 1e9:.1f} GB are free: lower "
            "training.micro_batch_size (or set it to auto), or set training.activation_checkpointing: true"
        )
    existing = Path(plan.output_dir).absolute()
    while not existing.exists():
        existing = existing.parent
    free = shutil.disk_usage(existing).free
    if sum(disk.values()) > free:
        warnings.append(
            f"the run writes about {sum(disk.values()) / 1e9:.1f} GB, and {free / 1e9:.1f} GB are free on "
            "the disk of output_dir: lower checkpoint.keep_last, or name another output_dir"
        )
    return warnings
