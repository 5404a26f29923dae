"""Speed of fine-tuning on texts of mixed length, compared with every row padded to `max_length`."""

from __future__ import annotations

import copy
from typing import Any

import torch

from bertcli.config.finetune import FinetuneConfig
from bertcli.measure.clock import device_name, now
from bertcli.measure.padded import Padded
from bertcli.measure.plan_finetuning import plan_finetuning
from bertcli.measure.step import take_steps, time_in_turn
from bertcli.memory.peak import peak_memory
from bertcli.runs.resolve import resolve_loop


def bench_finetune(config: FinetuneConfig, steps: int) -> dict[str, Any]:
    """Steps on the config's own rows, alternately as a run takes them and padded, without compiling.

    Returns:
        what, device, precision, batch_size, max_length, tokens_per_row; ms_per_step (mean, since steps of
        long rows take longer), rows_per_s, tokens_per_s (real ones); padded_rows_per_s, speedup (over
        padded); peak_memory_mb.

    Raises:
        UserError: a model or labeled files that cannot be used; a device that does not exist.
    """
    plan = plan_finetuning(config)
    training = plan.training.model_copy(update={"compile": False})
    training = resolve_loop(
        training,
        plan.architecture,
        plan.length,
        tokens=plan.tokens,
        mean_length=plan.mean_length,
        joint_rows=plan.joint_rows,
    )
    assert training.micro_batch_size != "auto"
    device, size = torch.device(training.device), training.largest_batch
    model = plan.build().to(device)
    padded = Padded(copy.deepcopy(model), config.task.max_length)
    sides = [
        take_steps(side, plan.task, iter(plan.make_steps(size, training.micro_batch_size)), training=training)
        for side in (model, padded)
    ]
    own, of_padded = time_in_turn(sides, steps, lambda: now(device))
    rows, seconds, tokens = steps * size, sum(own.seconds), sum(own.tokens)
    return {
        "what": "finetune",
        "device": device_name(device),
        "precision": training.precision,
        "batch_size": size,
        "max_length": config.task.max_length,
        "tokens_per_row": tokens / rows,
        "ms_per_step": 1e3 * seconds / steps,
        "rows_per_s": rows / seconds,
        "tokens_per_s": tokens / seconds,
        "padded_rows_per_s": rows / sum(of_padded.seconds),
        "speedup": sum(of_padded.seconds) / seconds,
        "peak_memory_mb": peak_memory(device) / 1e6,
    }
