"""Speed of training steps and of the data on this machine, beside the speed of its matrix products."""

import copy
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import torch

from bertcli.advice.bench import timing
from bertcli.advice.bench.plan import decide_here, plan_finetuning, pretraining_sizes, pretraining_task
from bertcli.batches.share import MicroBatch, num_steps
from bertcli.batches.stream import BatchStream, training_stream
from bertcli.config.corpus import CorpusConfig
from bertcli.config.finetune import FinetuneConfig
from bertcli.config.run import DecidedLoop, DecidedPretraining, ModelRecipe, TrainingRecipe, with_values
from bertcli.config.schema import PretrainConfig
from bertcli.corpus import build, documents, encode, files, token_store
from bertcli.folders.config_file import new_architecture
from bertcli.folders.init_from import check_max_length
from bertcli.model.architecture import training_flops
from bertcli.model.encoder import encoders
from bertcli.model.pretraining import LanguageModel
from bertcli.objectives.base import Task
from bertcli.objectives.learner import learner_of
from bertcli.system.memory import peak_memory
from bertcli.system.terminal import say
from bertcli.tokenizer.tokenizer import Tokenizer
from bertcli.training.recipe import decide_recipe
from bertcli.training.resolve import decide_loop, decide_pretraining, own_share


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
    decided = decide_loop(training, sizes, length, tokens=0, predicted=timing.MASK_RATE)
    stream = timing.synthetic_steps(
        vocab_size, decided.largest_batch, length, share=own_share(decided), objective=objective
    )
    predicted = max(1, round(timing.MASK_RATE * length)) / length
    named = {"what": "step", "family": sizes.family, "preset": model.preset, "length": length}
    learner = learner_of(objective.name)
    built = learner.build(model, sizes)
    task = learner.task(with_values(training, {"compile": decided.compile}))
    return named | _measure(built, task, decided, batches=stream, predicted=predicted, steps=steps)


def bench_config(config: PretrainConfig, steps: int) -> dict[str, Any]:
    """Measure pretraining steps on the config's own text.

    Returns as `bench_synthetic`; raises as `bench_stream`.
    """
    decided, store, stream = _open_stream(config)
    sizes = pretraining_sizes(decided, store.tokenizer.vocab_size)
    batches, length = _full_steps(decided, stream, timing.WARMUP_STEPS + steps), decided.data.max_length
    predicted = stream.mask_rate(0) * stream.max_tokens / length
    named = {"what": "step", "family": sizes.family, "preset": decided.model.preset, "length": length}
    model = learner_of(decided.data.objective).build(decided.model, sizes)
    task = pretraining_task(decided, store.tokenizer)
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
    reports = timing.take_steps(model.to(device), task, batches, training=training)
    times = timing.time_steps(reports, device, steps)
    flops = training_flops(sizes, times.tokens_per_step / training.largest_batch, predicted)
    peak, ceiling = peak_memory(device), timing.matmul_rate(device, training.precision)
    return {
        "vocab_size": sizes.vocab_size,
        "batch_size": training.largest_batch,
        "micro_batch_size": training.micro_batch_size,
        "dropout": sizes.dropout,
        "device": timing.device_name(device),
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
    padded = timing.Padded(copy.deepcopy(model), config.task.max_length)
    at_once = training.micro_batch_size
    sides = [
        timing.take_steps(side, plan.task, plan.make_steps(size, at_once), training=training)
        for side in (model, padded)
    ]
    own, of_padded = timing.time_in_turn(sides, steps, lambda: timing.now(device))
    rows, seconds, tokens = steps * size, sum(own.seconds), sum(own.tokens)
    return {
        "what": "finetune",
        "device": timing.device_name(device),
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


_PARAGRAPHS = 200
"""Number of paragraphs per call, about as many as in a chunk of a store's build."""


def _open_stream(config: PretrainConfig) -> tuple[DecidedPretraining, token_store.OpenStore, BatchStream]:
    """The decided config, its store, which is built if it is missing, and the batches of a run."""
    recipe = decide_recipe(config, say)
    check_max_length(recipe)
    store = build.prepare_store(recipe, say)
    sizes = pretraining_sizes(recipe, store.tokenizer.vocab_size)
    steps = num_steps(recipe, store.tokenizer.frame, store.train.num_tokens)
    return decide_pretraining(recipe, sizes, steps), store, training_stream(recipe, store)


def _full_steps(config: DecidedPretraining, stream: BatchStream, number: int) -> Iterator[list[MicroBatch]]:
    """Steps of rows of full length, divided as in a run and drawn by as many loader processes."""
    return stream.steps(0, number, own_share(config.training), config.data.workers)


def bench_stream(config: PretrainConfig, batches: int) -> dict[str, Any]:
    """The speed of drawing batches of the config's own text, as in a run.

    Returns:
        what, device, workers, batch_size, length; batches_per_s, tokens_per_s (real tokens).

    Raises:
        UserError: as `corpus.build.prepare_store` and `training.resolve.decide_pretraining`.
    """
    decided, _, stream = _open_stream(config)
    steps = _full_steps(decided, stream, batches + 1)
    next(steps)  # not timed: this step loads pages of the store and starts the loader processes
    begun = time.perf_counter()
    tokens = sum(micro_batch.batch.num_tokens for step in steps for micro_batch in step)
    seconds = time.perf_counter() - begun
    return {
        "what": "stream",
        "device": decided.training.device,
        "workers": decided.data.workers,
        "batch_size": decided.training.batch_size,
        "length": decided.data.max_length,
        "batches_per_s": batches / seconds,
        "tokens_per_s": tokens / seconds,
    }


def bench_tokenize(corpus: CorpusConfig, tokenizer: Tokenizer, megabytes: float) -> dict[str, Any]:
    """The speed of splitting and tokenizing the first `megabytes` of a corpus, in one process of `prepare`.

    Returns:
        what, vocab_size, megabytes (of text), sentences; mb_per_s, tokens_per_s.

    Raises:
        UserError: the corpus cannot be read.
    """
    paragraphs = list(_first(corpus, megabytes))
    encoder = encode.ChunkEncoder(tokenizer, corpus)
    tokens = sentences = 0
    begun = time.perf_counter()
    for start in range(0, len(paragraphs), _PARAGRAPHS):
        encoded = encoder(0, paragraphs[start : start + _PARAGRAPHS], [0])
        tokens, sentences = tokens + len(encoded.ids), sentences + len(encoded.lengths)
    seconds = time.perf_counter() - begun
    size = sum(len(paragraph.encode()) for paragraph in paragraphs) / 1e6
    return {
        "what": "tokenize",
        "device": "cpu",
        "vocab_size": tokenizer.vocab_size,
        "megabytes": size,
        "sentences": sentences,
        "mb_per_s": size / seconds,
        "tokens_per_s": tokens / seconds,
    }


def _first(corpus: CorpusConfig, megabytes: float) -> Iterator[str]:
    """The first paragraphs of the corpus, up to `megabytes`."""
    size = 0
    for file in files.corpus_files(corpus):
        for paragraph in filter(None, documents.read_paragraphs(file.path, corpus.of(file.source))):
            yield paragraph
            size += len(paragraph.encode())
            if size >= 1e6 * megabytes:
                return
