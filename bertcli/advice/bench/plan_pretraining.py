"""The plan of a pretraining run. The token store is used if it is built; it is not needed."""

import math
from collections.abc import Callable, Iterator, Sequence

from bertcli.advice.bench.plan import Plan, pretraining_sizes
from bertcli.advice.bench.timing import synthetic_steps
from bertcli.batches.share import BatchSizes, MicroBatch, Share, num_steps, ramp_steps
from bertcli.batches.stream import BatchStream
from bertcli.config.run import PretrainRecipe, with_values
from bertcli.config.schema import DEFAULT_STEPS, PretrainConfig
from bertcli.config.section import ends, mean_of
from bertcli.corpus.build import prepare_store
from bertcli.corpus.manifest import MANIFEST
from bertcli.corpus.matching import load_given_tokenizer, output_paths, store_folder
from bertcli.corpus.sample import text_bytes
from bertcli.corpus.sources import find_sources
from bertcli.corpus.token_store import OpenStore, ids_dtype
from bertcli.folders.config_file import sharing
from bertcli.objectives.base import Task
from bertcli.objectives.distillation import taught
from bertcli.objectives.learner import learner_of
from bertcli.objectives.registry import OBJECTIVES
from bertcli.system.memory import pretraining_parameters
from bertcli.system.terminal import say
from bertcli.tokenizer.tokenizer import Tokenizer
from bertcli.training.recipe import BYTES_PER_TOKEN, decide_recipe

TOKENS_PER_SENTENCE = 22
"""Tokens per sentence of English text; assumed if there is no store."""
_ENDLESS = 1 << 40


def plan_pretraining(config: PretrainConfig, report: Callable[[str], None] = say) -> Plan:
    """The plan of the run. Raises `UserError` for missing text or model, or a store that does not match."""
    config = decide_recipe(config, report)
    store = prepare_store(config, report) if (store_folder(config) / MANIFEST).is_file() else None
    data, objective = config.data, OBJECTIVES[config.data.objective]
    pairs = objective.pairs
    mask_rate = max(ends(data.mask_rate))
    tokenizer = load_given_tokenizer(config) if store is None else store.tokenizer
    vocab_size = config.tokenizer.vocab_size if tokenizer is None else tokenizer.vocab_size
    sizes = pretraining_sizes(config, vocab_size)
    shared = sharing(config.model, sizes.family) if sizes.generator else "tied"
    parameters = pretraining_parameters(sizes, pairs.is_pair, shared)
    text_tokens, store_bytes = _text_size(config, store, vocab_size)

    def make_steps(batch_size: int, rows: int) -> Iterator[Sequence[MicroBatch]]:
        share = Share(rows)
        if store is None:
            return synthetic_steps(
                vocab_size,
                batch_size,
                data.max_length,
                share=share,
                objective=objective,
                mask_rate=mask_rate,
            )
        stream = BatchStream(store.train, store.tokenizer, data, seed=config.seed, batch_size=batch_size)
        return stream.steps(data.short_steps, _ENDLESS, share, workers=0)

    # A vocabulary that is not trained yet will have rows as WordPiece has them.
    special = 2 + pairs.is_pair if tokenizer is None else tokenizer.frame.cost(pairs.is_pair)
    steps = _steps(config, store, text_tokens)
    saves = math.ceil(steps / config.checkpoint.every_steps)
    return Plan(
        kind="pretraining",
        output_dir=config.output_dir,
        training=with_values(config.training, {"ramp_steps": ramp_steps(config, steps)}),
        architecture=sizes,
        parameters=parameters,
        trained=sum(parameters.values()),
        length=data.max_length,
        mean_length=None,
        predicted=mask_rate * (data.max_length - special) / data.max_length,
        steps=steps,
        tokens=_tokens(config, steps),
        heldout_tokens=_heldout_tokens(config, store, text_tokens) * (steps // config.evaluation.every_steps),
        store_bytes=store_bytes,
        kept=min(config.checkpoint.keep_last, saves),
        models=1,
        task=_task(config, tokenizer),
        build=lambda: learner_of(data.objective).build(config.model, sizes),
        make_steps=make_steps,
        given=list(_given(config, store, vocab_size, text_tokens=text_tokens)),
    )


def _given(
    config: PretrainConfig, store: OpenStore | None, vocab_size: int, text_tokens: float
) -> Iterator[str]:
    if store is None:
        yield (
            f"the store is not built yet: {vocab_size:,} entries in the vocabulary, {BYTES_PER_TOKEN} bytes "
            f"of text a token ({text_tokens:,.0f} tokens), full rows"
        )
    if config.distillation is not None:
        yield "the teacher's weights come on top of the memory"


def _task(config: PretrainConfig, tokenizer: Tokenizer | None) -> Task:
    task = learner_of(config.data.objective).task(config.training)
    if config.distillation is None:
        return task
    assert tokenizer is not None, "a student has its teacher's tokenizer"
    return taught(task, config, tokenizer)


def _text_size(config: PretrainConfig, store: OpenStore | None, vocab_size: int) -> tuple[float, float]:
    """Number of training tokens, and bytes of the store; without a store, estimated from the files' size."""
    if store is not None:
        return store.manifest.train.tokens, float(sum(store.manifest.arrays.values()))
    tokens = text_bytes(find_sources(config.corpus.files, output_paths(config))) / BYTES_PER_TOKEN
    tokens *= 1 - config.corpus.heldout_fraction
    return tokens, tokens * (ids_dtype(vocab_size).itemsize + 8 / TOKENS_PER_SENTENCE)


def _steps(config: PretrainRecipe, store: OpenStore | None, text_tokens: float) -> int:
    if store is not None:
        return num_steps(config, store.tokenizer.frame, store.train.num_tokens)
    if config.training.epochs is None:
        return config.training.steps or DEFAULT_STEPS
    per_step = mean_of(config.training.batch_size) * config.data.max_length
    return math.ceil(config.training.epochs * text_tokens / per_step)


def _tokens(config: PretrainRecipe, steps: int) -> int:
    """Number of tokens of all steps, if every row is full."""
    data, sizes = config.data, BatchSizes(config.training.batch_size, ramp_steps(config, steps))
    rows, short = sizes.before(steps), sizes.before(min(steps, data.short_steps))
    return short * data.short_length + (rows - short) * data.max_length


def _heldout_tokens(config: PretrainRecipe, store: OpenStore | None, text_tokens: float) -> float:
    """Number of tokens that one evaluation reads."""
    fraction = config.corpus.heldout_fraction
    at_most = config.evaluation.batches * config.training.largest_batch * config.data.max_length
    if store is None:
        return min(at_most, text_tokens * fraction / (1 - fraction))
    return min(at_most, store.heldout.num_tokens)
