"""Speed of the pretraining step on this machine, compared with the speed of its matrix products alone."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import torch

from bertcli.config.model import ModelConfig
from bertcli.config.schema import PretrainConfig, TrainingConfig
from bertcli.data.share import MicroBatch
from bertcli.hf.new_model import new_architecture
from bertcli.measure.bench_data import full_steps, open_stream
from bertcli.measure.clock import device_name
from bertcli.measure.matmul import matmul_rate
from bertcli.measure.step import WARMUP_STEPS, take_steps, time_steps
from bertcli.measure.synthetic import MASK_RATE, synthetic_steps
from bertcli.memory.peak import peak_memory
from bertcli.model.encoder import encoders
from bertcli.model.flops import training_flops
from bertcli.runs.objectives import Model, build_model, build_task
from bertcli.runs.resolve import own_share, resolve_loop
from bertcli.runs.teacher import taught
from bertcli.tasks.base import Task
from bertcli.text.tokenizer import Tokenizer


def bench_synthetic(
    model: ModelConfig, vocab_size: int, length: int, training: TrainingConfig, steps: int
) -> dict[str, Any]:
    """Steps on full rows of random ids.

    Returns:
        what, family, preset, length, vocab_size, batch_size, micro_batch_size, dropout, device, threads,
        precision, compile; ms_per_step (median), ms_quartiles; tokens_per_s (real ones); tflops (of the
        model, by `model.flops`), matmul_tflops (of the device, in that precision), matmul_share;
        peak_memory_mb.

    Raises:
        UserError: a device that does not exist.
    """
    objective = model.fresh.objective
    sizes = new_architecture(model, vocab_size, objective=objective)
    training = resolve_loop(training, sizes, length, tokens=0, predicted=MASK_RATE)
    stream = synthetic_steps(
        vocab_size, training.largest_batch, length, share=own_share(training), objective=objective
    )
    predicted = max(1, round(MASK_RATE * length)) / length
    named = {"what": "step", "family": sizes.family, "preset": model.preset, "length": length}
    built = build_model(model, objective, sizes)
    task = build_task(objective, compiled=training.compile is True)
    return named | _measure(built, task, training, batches=stream, predicted=predicted, steps=steps)


def bench_config(config: PretrainConfig, steps: int) -> dict[str, Any]:
    """Steps on the config's own text.

    Returns as `bench_synthetic`; raises as `bench_data.open_stream`.
    """
    config, sizes, stream = open_stream(config)
    batches, length = full_steps(config, stream, WARMUP_STEPS + steps), config.data.max_length
    predicted = stream.mask_rate(config.data.short_steps) * stream.max_tokens / length
    named = {"what": "step", "family": sizes.family, "preset": config.model.preset, "length": length}
    objective = config.data.objective
    model = build_model(config.model, objective, sizes)
    task: Task = build_task(objective, compiled=config.training.compile is True)
    if config.distillation is not None:
        task = taught(task, config, Tokenizer.load(Path(config.distillation.teacher)))
    return named | _measure(model, task, config.training, batches=batches, predicted=predicted, steps=steps)


def _measure(
    model: Model,
    task: Task,
    training: TrainingConfig,
    batches: Iterator[Sequence[MicroBatch]],
    predicted: float,
    steps: int,
) -> dict[str, Any]:
    """Time `steps` steps of a new model; `predicted` as in `model.flops`."""
    assert training.precision != "auto"
    device = torch.device(training.device)
    sizes = model.architecture
    for encoder in encoders(model):
        encoder.activation_checkpointing = training.activation_checkpointing
    times = time_steps(take_steps(model.to(device), task, batches, training=training), device, steps)
    flops = training_flops(sizes, times.tokens_per_step / training.largest_batch, predicted)
    peak, ceiling = peak_memory(device), matmul_rate(device, training.precision)
    return {
        "vocab_size": sizes.vocab_size,
        "batch_size": training.largest_batch,
        "micro_batch_size": training.micro_batch_size,
        "dropout": sizes.dropout,
        "device": device_name(device),
        "threads": torch.get_num_threads(),
        "precision": training.precision,
        "compile": training.compile,
        "ms_per_step": 1e3 * times.median,
        "ms_quartiles": [1e3 * seconds for seconds in times.quartiles],
        "tokens_per_s": times.tokens_per_second,
        "tflops": flops * times.tokens_per_second / 1e12,
        "matmul_tflops": ceiling / 1e12,
        "matmul_share": flops * times.tokens_per_second / ceiling,
        "peak_memory_mb": peak / 1e6,
    }
