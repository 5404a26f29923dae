"""What to compute on and how: `auto` -> a device, a precision and a micro-batch size, decided once a run."""

import os
from contextlib import AbstractContextManager, nullcontext
from typing import Any, Literal, cast

import torch

from bertcli.config.section import Precision
from bertcli.model.architecture import Architecture
from bertcli.system.errors import UserError
from bertcli.system.memory import (
    CHECKPOINT_BYTES,
    FP32,
    StepSizes,
    all_memory,
    free_memory,
    pretraining_parameters,
    rows_that_fit,
    step_memory,
)

NARROW = {"bf16": torch.bfloat16, "fp16": torch.float16}

_CPU_TOKENS, _GPU_TOKENS = 16_384, 131_072
"""Most tokens at once. A device of this kind gains no speed beyond it, and only uses more memory."""
_LABELED_ROWS, _LABELED_TOKENS = 16, 512
"""Labeled rows at once on a CPU: a multiple of 16 with about 512 tokens, at least 16.

Rows are sorted by length. More rows at once have more padding; fewer rows at once pay more often for the
fixed work of a pass (`LOG.md`).
"""
USABLE = 0.75
"""Share of the memory to use: other processes need some too, and a step's need is known to about 10 %."""


def resolve_device(name: str) -> torch.device:
    """The device for `auto` or a name that `torch.device` takes. Raises `UserError` if it does not exist."""
    if name == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        device = torch.device(name)
    except RuntimeError:
        raise UserError(f"device: {name!r} is unknown; give auto, cpu, cuda or cuda:N") from None
    if device.type not in ("cpu", "cuda"):
        raise UserError(f"device: {name!r} is not supported; give auto, cpu, cuda or cuda:N")
    if device.type == "cuda" and (device.index or 0) >= torch.cuda.device_count():
        found = f"{torch.cuda.device_count()} CUDA devices" if torch.cuda.is_available() else "no CUDA device"
        raise UserError(f"device: {name!r} is set, but this machine has {found}; set device: auto")
    return device


def resolve_precision(name: Literal["auto"] | Precision, device: torch.device) -> Precision:
    """The precision for a name; `auto` is bf16 on hardware that multiplies it fast (Ampere and later, AMX,
    AVX-512 BF16), fp16 on other GPUs with tensor cores (Volta, Turing), else fp32."""
    if name != "auto":
        return name
    if device.type == "cuda":
        capability = torch.cuda.get_device_capability(device)
        return "bf16" if capability >= (8, 0) else "fp16" if capability >= (7, 0) else "fp32"
    capabilities = torch.cpu.get_capabilities()
    return "bf16" if capabilities.get("amx_bf16") or capabilities.get("avx512_bf16") else "fp32"


def autocast(precision: Precision, device: torch.device) -> AbstractContextManager[object]:
    """The context in which a forward pass of this precision runs; weights stay fp32."""
    return nullcontext() if precision == "fp32" else torch.autocast(device.type, dtype=NARROW[precision])


def sum_in_order(device: torch.device) -> None:
    """Make a GPU sum in the same order each time, so that a resumed run gives the same bits.

    The default order depends on the GPU's threads, for example in the backward pass of attention.
    """
    if device.type != "cuda":
        return
    os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")  # read by cuBLAS; recommended by NVIDIA
    torch.use_deterministic_algorithms(True, warn_only=True)
    deterministic = cast(Any, torch.utils.deterministic)
    deterministic.fill_uninitialized_memory = False  # else each new tensor is filled before it is written


def resolve_workers(workers: int | Literal["auto"], device: torch.device) -> int:
    """Loader processes: none on a CPU, where they would slow the step down."""
    if workers != "auto":
        return workers
    return min(4, max(1, len(os.sched_getaffinity(0)) - 1)) if device.type == "cuda" else 0


def fast_rows(sizes: StepSizes, mean_length: float | None) -> int:
    """The most rows at once with which a device still gains speed; `sizes.rows` is ignored.

    `mean_length`: tokens of a labeled row; None: the rows are full.
    """
    rows = max(1, (_CPU_TOKENS if sizes.on_cpu else _GPU_TOKENS) // sizes.length)
    if not sizes.on_cpu or mean_length is None:
        return rows
    return min(rows, max(_LABELED_ROWS, int(_LABELED_TOKENS / mean_length) // _LABELED_ROWS * _LABELED_ROWS))


def fitting_rows(
    architecture: Architecture,
    sizes: StepSizes,
    at_most: int,
    device: torch.device,
    num_local_ranks: int = 1,
    memory: float | None = None,
) -> int:
    """Rows at once: as many as fit into the device's memory, at most `at_most`; `sizes.rows` is ignored.

    Args:
        num_local_ranks: processes on this machine, which share a CPU's memory.
        memory: bytes; None: all that the device has.

    The memory that is free now does not count. The rows at once decide which dropout is drawn and how sums
    are rounded, so the same config would give other weights on a busy machine. A CPU also holds a copy of
    weights and moments, from which checkpoints are written.
    """
    parameters = sum(pretraining_parameters(architecture, pair_head=True).values())
    available = USABLE * (all_memory(device) if memory is None else memory)
    if sizes.on_cpu:
        available = (available - CHECKPOINT_BYTES * parameters) / num_local_ranks
    return rows_that_fit(architecture, parameters, sizes, available=available, at_most=at_most)


def crowded(
    architecture: Architecture, sizes: StepSizes, device: torch.device, num_local_ranks: int = 1
) -> str | None:
    """A warning if a step of `sizes.rows` at once needs more than is free on the device now; else None."""
    parameters = sum(pretraining_parameters(architecture, pair_head=True).values())
    need = step_memory(architecture, parameters, parameters, sizes=sizes).total
    need += CHECKPOINT_BYTES * parameters * sizes.on_cpu - FP32 * parameters  # the weights are there already
    free = free_memory(device) / (num_local_ranks if sizes.on_cpu else 1)
    if need <= free:
        return None
    return (
        f"warning: a step of {sizes.rows:,} rows at once needs about {need / (1 << 30):.1f} GiB, and "
        f"{free / (1 << 30):.1f} are free now: close other programs, or set a smaller "
        "training.micro_batch_size (other rows at once draw another dropout)"
    )
