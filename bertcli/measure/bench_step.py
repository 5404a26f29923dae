"""Speed of the pretraining step on this machine, beside what its matrix products alone would allow."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from bertcli.config.schema import ModelConfig, PretrainConfig, TrainingConfig
from bertcli.data.pair_rules import NEXT_SENTENCE, PairRule
from bertcli.data.share import MicroBatch
from bertcli.data.stream import BatchStream
from bertcli.measure.clock import device_name
from bertcli.measure.matmul import matmul_rate
from bertcli.measure.sizes import pretraining_sizes
from bertcli.measure.step import WARMUP_STEPS, take_steps, time_steps
from bertcli.measure.synthetic import MASK_RATE, synthetic_steps
from bertcli.memory.peak import peak_memory
from bertcli.model.architecture import Architecture
from bertcli.model.build import architecture
from bertcli.model.flops import training_flops
from bertcli.model.pretraining import PretrainingModel
from bertcli.runs.recipe import decided_config
from bertcli.runs.resolve import own_share, resolve_config, resolve_loop
from bertcli.store.build import prepare_store
from bertcli.tasks.masked_language import MaskedLanguage
from bertcli.terminal import say


def bench_synthetic(
    model: ModelConfig, vocab_size: int, length: int, training: TrainingConfig, steps: int
) -> dict[str, Any]:
    """Steps on full rows of no text.

    Returns:
        what, preset, vocab_size, batch_size, micro_batch_size, length, dropout, device, threads, precision,
        compile; ms_per_step (median), ms_quartiles; tokens_per_s (real ones); tflops (of the
        model, by `model.flops`), matmul_tflops (of the device, in that precision), matmul_share;
        peak_memory_mb.

    Raises:
        UserError: a device that is not there.
    """
    sizes = architecture(model, vocab_size)
    training = resolve_loop(training, sizes, length, tokens=0, predicted=MASK_RATE)
    stream = synthetic_steps(vocab_size, training.batch_size, length, share=own_share(training))
    predicted = max(1, round(MASK_RATE * length)) / length
    return _Bench(
        preset=model.preset,
        sizes=sizes,
        training=training,
        batches=stream,
        length=length,
        predicted=predicted,
        pairs=NEXT_SENTENCE,
    ).measure(steps)


def bench_config(config: PretrainConfig, steps: int) -> dict[str, Any]:
    """Steps on the config's own text, from its store, which is built first if need be.

    Returns and raises as `bench_synthetic`, and as `store.build.prepare_store` raises.
    """
    config = decided_config(config, say)
    store = prepare_store(config, say)
    stream = BatchStream(
        store.train, store.tokenizer, config.data, seed=config.seed, batch_size=config.training.batch_size
    )
    sizes = pretraining_sizes(config, store.tokenizer.vocab_size)
    config = resolve_config(config, sizes, stream)
    assert config.data.workers != "auto"
    first, length = config.data.short_steps, config.data.max_length
    last = first + WARMUP_STEPS + steps
    batches = stream.steps(first, last, own_share(config.training), config.data.workers)
    predicted = config.data.mask_rate * stream.max_tokens / length
    return _Bench(
        preset=config.model.preset,
        sizes=sizes,
        training=config.training,
        batches=batches,
        length=length,
        predicted=predicted,
        pairs=stream.pairs,
    ).measure(steps)


@dataclass(frozen=True)
class _Bench:
    """A model, its batches and how it is trained; `length` and `predicted` as in `model.flops`."""

    preset: str | None
    sizes: Architecture
    training: TrainingConfig
    batches: Iterator[Sequence[MicroBatch]]
    length: int
    predicted: float
    pairs: PairRule

    def measure(self, steps: int) -> dict[str, Any]:
        """Take so many steps."""
        sizes, training = self.sizes, self.training
        assert training.precision != "auto"
        device = torch.device(training.device)
        model = PretrainingModel(sizes, pair_head=self.pairs.is_pair)
        model.body.encoder.activation_checkpointing = training.activation_checkpointing
        reports = take_steps(
            model.to(device),
            MaskedLanguage(self.pairs, training.compile is True),
            self.batches,
            training=training,
        )
        times = time_steps(reports, device, steps)
        flops = training_flops(sizes, times.tokens_per_step / training.batch_size, self.predicted)
        peak, ceiling = peak_memory(device), matmul_rate(device, training.precision)
        return {
            "what": "step",
            "preset": self.preset,
            "vocab_size": sizes.vocab_size,
            "batch_size": training.batch_size,
            "micro_batch_size": training.micro_batch_size,
            "length": self.length,
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
