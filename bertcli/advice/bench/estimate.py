"""An estimate of a run's time, memory and disk, from its config and a short probe on this machine."""

import shutil
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

from bertcli.advice.bench.plan import Plan, plan_finetuning, plan_pretraining
from bertcli.advice.bench.probe import SHARE_OF_PEAK, Probe, calculated, known_device, probe, step_sizes
from bertcli.advice.bench.timing import device_name
from bertcli.config.finetune import FinetuneConfig
from bertcli.config.run import DecidedLoop
from bertcli.config.schema import PretrainConfig
from bertcli.model.architecture import training_flops
from bertcli.model.init import sizes_alone
from bertcli.system.hardware import resolve_device
from bertcli.system.memory import FP32, free_memory, resident_memory, step_memory
from bertcli.training.optimizer import is_matrix
from bertcli.training.wrapping import launch_seconds

KERNELS = {"cpu": 100e6, "cuda": 500e6}
"""Bytes that torch loads at the first step and keeps; on a GPU, CUDA's context."""
_MAPPED = 1 << 16
"""Bytes of the store that become resident when a row is read."""


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
    tokens, given = plan.tokens, list(plan.given)
    if known is None:
        where = resolve_device(plan.training.device)
        device, before = device_name(where), resident_memory(where)
        limit = free_memory(where) + before
        seen = probe(plan)
        needed = _memory(plan, seen.training, where.type == "cpu", before=before, seen=seen)
        if not is_labeled:  # times the share of real tokens in full rows
            tokens *= seen.tokens / (seen.training.largest_batch * plan.length)
    else:
        seen, limit = calculated(plan, known), known.memory
        needed = _memory(plan, seen.training, on_cpu=False)
        launched = 1e3 * launch_seconds(plan.architecture.layers)
        given += [
            f"calculated: {SHARE_OF_PEAK:.0%} of the rate in the data sheet of {device}, and no micro-batch "
            f"faster than its kernels can be launched ({launched:.1f} ms)",
            f"{device}: {known.comparison}",
        ]
    training, tokens_per_s = seen.training, seen.tokens / seen.seconds
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
        "flops_per_token": training_flops(plan.architecture, plan.length, plan.predicted),
        "memory_mb": _megabytes(needed),
        "disk_mb": _megabytes(disk),
        "steps": plan.steps,
        "tokens": round(tokens),
        "tokens_per_s": tokens_per_s,
        "hours": hours,
        "given": given,
        "warnings": list(_warnings(needed, limit, disk, output=Path(config.output_dir))),
    }


def _memory(
    plan: Plan, training: DecidedLoop, on_cpu: bool, before: float = 0.0, seen: Probe | None = None
) -> dict[str, float]:
    """Part -> bytes of memory.

    If the probe took the run's own micro-batches, `other` is the memory that it held beyond the calculation.
    If it held less, the parts that are estimated too high are reduced by the difference.
    """
    rows = max(training.micro_batch_size, plan.labeled.largest if plan.labeled else 1)
    sizes = step_sizes(plan, training.precision, rows, on_cpu=on_cpu)
    parameters = sum(plan.parameters.values())
    parts = asdict(step_memory(plan.architecture, parameters, plan.trained, sizes=sizes))
    parts["moments"] = FP32 * _moments(plan)
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
    return FP32 * (sum(plan.parameters.values()) + _moments(plan))


def _moments(plan: Plan) -> int:
    """Values of the optimizer's state: two for each trained parameter, one for those in Muon's matrices."""
    if plan.training.optimizer == "adamw":
        return 2 * plan.trained
    with sizes_alone():
        parameters = [each for each in plan.build().named_parameters() if each[1].requires_grad]
    return sum(value.numel() * (1 if is_matrix(name, value) else 2) for name, value in parameters)


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
