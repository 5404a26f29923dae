"""Speed of the data on this machine: batches from a store, and tokens from text."""

import time
from collections.abc import Iterator
from typing import Any

from bertcli.advice.bench.plan import pretraining_sizes
from bertcli.batches.share import MicroBatch, num_steps
from bertcli.batches.stream import BatchStream, training_stream
from bertcli.config.run import DecidedPretraining
from bertcli.config.schema import CorpusConfig, PretrainConfig
from bertcli.corpus.build import prepare_store
from bertcli.corpus.documents import read_paragraphs
from bertcli.corpus.encode import ChunkEncoder
from bertcli.corpus.sources import find_sources
from bertcli.model.architecture import Architecture
from bertcli.system.terminal import say
from bertcli.tokenizer.tokenizer import Tokenizer
from bertcli.training.recipe import decide_recipe
from bertcli.training.resolve import decide_pretraining, own_share

_PARAGRAPHS = 200
"""Number of paragraphs per call, about as many as in a chunk of a store's build."""


def open_stream(config: PretrainConfig) -> tuple[DecidedPretraining, Architecture, BatchStream]:
    """The decided config, the model's sizes, and the batches of the config's store, built if it is missing.

    Raises:
        UserError: as `corpus.build.prepare_store` and `training.resolve.decide_pretraining`.
    """
    recipe = decide_recipe(config, say)
    store = prepare_store(recipe, say)
    sizes = pretraining_sizes(recipe, store.tokenizer.vocab_size)
    steps = num_steps(recipe, store.tokenizer.frame, store.train.num_tokens)
    return decide_pretraining(recipe, sizes, steps), sizes, training_stream(recipe, store)


def full_steps(config: DecidedPretraining, stream: BatchStream, number: int) -> Iterator[list[MicroBatch]]:
    """Steps of rows of full length, divided as in a run and drawn by as many loader processes."""
    first = config.data.short_steps
    return stream.steps(first, first + number, own_share(config.training), config.data.workers)


def bench_stream(config: PretrainConfig, batches: int) -> dict[str, Any]:
    """The speed of drawing batches of the config's own text, as in a run.

    Returns:
        what, device, workers, batch_size, length; batches_per_s, tokens_per_s (real tokens).

    Raises:
        UserError: as `open_stream`.
    """
    decided, _, stream = open_stream(config)
    steps = full_steps(decided, stream, batches + 1)
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
    encode = ChunkEncoder(tokenizer, corpus)
    tokens = sentences = 0
    begun = time.perf_counter()
    for start in range(0, len(paragraphs), _PARAGRAPHS):
        encoded = encode(paragraphs[start : start + _PARAGRAPHS], [0])
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
    for source in find_sources(corpus.files):
        for paragraph in read_paragraphs(source.path, corpus):
            if paragraph is None:
                continue
            yield paragraph
            size += len(paragraph.encode())
            if size >= 1e6 * megabytes:
                return
