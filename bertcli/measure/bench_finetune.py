"""Speed of fine-tuning on texts of mixed length, beside the same with every row filled up to `max_length`."""

from __future__ import annotations

import copy
from typing import Any

import torch

from bertcli.config.finetune import FinetuneConfig
from bertcli.engine.resolve import resolve_loop
from bertcli.measure.clock import device_name, now
from bertcli.measure.padded import Padded
from bertcli.measure.plan_finetuning import plan_finetuning
from bertcli.measure.step import WARMUP_STEPS, take_steps
from bertcli.memory.peak import peak_memory


def bench_finetune(config: FinetuneConfig, steps: int) -> dict[str, Any]:
    """Steps on the config's own rows; each is taken once as the run takes it and once padded, in turn, by
    models that are not compiled.

    Returns:
        what, device, precision, batch_size, max_length, tokens_per_row; ms_per_step (mean, as steps of long
        rows take longer), rows_per_s, tokens_per_s (real ones); padded_rows_per_s, and how many times as
        fast as that (speedup); peak_memory_mb.

    Raises:
        UserError: a model or labelled files that cannot be used; a device that is not there.
    """
    plan = plan_finetuning(config)
    training = plan.training.model_copy(update={"compile": False})
    training = resolve_loop(training, plan.architecture, plan.length, plan.tokens)
    assert training.micro_batch_size != "auto"
    device, size = torch.device(training.device), training.batch_size
    model = plan.build().to(device)
    padded = Padded(copy.deepcopy(model), config.task.max_length)
    sides = [
        take_steps(side, plan.task, iter(plan.make_steps(size, training.micro_batch_size)), training)
        for side in (model, padded)
    ]
    for _ in range(WARMUP_STEPS):
        for reports in sides:
            next(reports)
    seconds, tokens = [0.0, 0.0], [0, 0]
    for _ in range(steps):
        for side, reports in enumerate(sides):
            started = now(device)
            tokens[side] += next(reports).tokens
            seconds[side] += now(device) - started
    rows = steps * size
    return {
        "what": "finetune",
        "device": device_name(device),
        "precision": training.precision,
        "batch_size": size,
        "max_length": config.task.max_length,
        "tokens_per_row": tokens[0] / rows,
        "ms_per_step": 1e3 * seconds[0] / steps,
        "rows_per_s": rows / seconds[0],
        "tokens_per_s": tokens[0] / seconds[0],
        "padded_rows_per_s": rows / seconds[1],
        "speedup": seconds[1] / seconds[0],
        "peak_memory_mb": peak_memory(device) / 1e6,
    }
