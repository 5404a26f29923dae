"""Speed of training steps on this machine, compared with the speed of its matrix products."""

import copy
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch

from bertcli.advice.bench.data import full_steps, open_stream
from bertcli.advice.bench.plan import decide_here, plan_finetuning
from bertcli.advice.bench.timing import (
    MASK_RATE,
    WARMUP_STEPS,
    Padded,
    device_name,
    matmul_rate,
    now,
    synthetic_steps,
    take_steps,
    time_in_turn,
    time_steps,
)
from bertcli.batches.share import MicroBatch
from bertcli.config.finetune import FinetuneConfig
from bertcli.config.run import DecidedLoop, ModelRecipe, TrainingRecipe, with_values
from bertcli.config.schema import PretrainConfig
from bertcli.folders.config_file import new_architecture
from bertcli.model.architecture import training_flops
from bertcli.model.encoder import encoders
from bertcli.model.pretraining import LanguageModel
from bertcli.objectives.base import Task
from bertcli.objectives.distillation import taught
from bertcli.objectives.learner import learner_of
from bertcli.system.memory import peak_memory
from bertcli.tokenizer.tokenizer import Tokenizer
from bertcli.training.resolve import decide_loop, own_share


def bench_synthetic(
    model: ModelRecipe, vocab_size: int, length: int, training: TrainingRecipe, steps: int
) -> dict[str, Any]:
    """Measure pretraining steps on full rows of random ids.

    Returns:
        what, family, preset, length, vocab_size, batch_size, micro_batch_size, dropout, device, threads,
        precision, compile; ms_per_step (median), ms_quartiles; tokens_per_s (real tokens); tflops (of the
        model, by `model.architecture`), matmul_tflops (of the device, in that precision), matmul_share;
        peak_memory_mb.

    Raises:
        UserError: the device does not exist.
    """
    objective = model.fresh.objective
    sizes = new_architecture(model, vocab_size, objective=objective)
    decided = decide_loop(training, sizes, length, tokens=0, predicted=MASK_RATE)
    stream = synthetic_steps(
        vocab_size, decided.largest_batch, length, share=own_share(decided), objective=objective
    )
    predicted = max(1, round(MASK_RATE * length)) / length
    named = {"what": "step", "family": sizes.family, "preset": model.preset, "length": length}
    learner = learner_of(objective.name)
    built = learner.build(model, sizes)
    task = learner.task(with_values(training, {"compile": decided.compile}))
    return named | _measure(built, task, decided, batches=stream, predicted=predicted, steps=steps)


def bench_config(config: PretrainConfig, steps: int) -> dict[str, Any]:
    """Measure pretraining steps on the config's own text.

    Returns as `bench_synthetic`; raises as `data.open_stream`.
    """
    decided, sizes, stream = open_stream(config)
    batches, length = full_steps(decided, stream, WARMUP_STEPS + steps), decided.data.max_length
    predicted = stream.mask_rate(decided.data.short_steps) * stream.max_tokens / length
    named = {"what": "step", "family": sizes.family, "preset": decided.model.preset, "length": length}
    learner = learner_of(decided.data.objective)
    model = learner.build(decided.model, sizes)
    task = learner.task(decided.training)
    if decided.distillation is not None:
        task = taught(task, decided, Tokenizer.load(Path(decided.distillation.teacher)))
    return named | _measure(model, task, decided.training, batches=batches, predicted=predicted, steps=steps)


def _measure(
    model: LanguageModel,
    task: Task,
    training: DecidedLoop,
    batches: Iterator[Sequence[MicroBatch]],
    predicted: float,
    steps: int,
) -> dict[str, Any]:
    """Time `steps` steps of a new model. `predicted`: share of predicted tokens (`model.architecture`)."""
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


def bench_finetune(config: FinetuneConfig, steps: int) -> dict[str, Any]:
    """Measure steps on the config's own rows, alternately as in a run and padded, without compiling.

    Returns:
        what, device, precision, batch_size, max_length, tokens_per_row; ms_per_step (mean, since steps of
        long rows take longer), rows_per_s, tokens_per_s (real tokens); padded_rows_per_s, speedup (over
        padded); peak_memory_mb.

    Raises:
        UserError: the model or labeled files cannot be used, or the device does not exist.
    """
    plan = plan_finetuning(config)
    training = decide_here(replace(plan, training=with_values(plan.training, {"compile": False})))
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
