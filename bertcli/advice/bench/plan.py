"""The plan of a run, for estimates and measurements: its model, sizes, steps and tokens."""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path

import numpy as np
from torch import nn

from bertcli.advice.bench.timing import synthetic_steps
from bertcli.batches.share import BatchSizes, MicroBatch, Share, num_steps, ramp_steps
from bertcli.batches.stream import BatchStream
from bertcli.config.finetune import FinetuneConfig
from bertcli.config.run import DecidedLoop, LoopRecipe, PretrainRecipe, with_values
from bertcli.config.schema import DEFAULT_STEPS, PretrainConfig
from bertcli.config.section import ends, mean_of
from bertcli.corpus import files, manifest, matching, sample, token_store
from bertcli.corpus.build import prepare_store
from bertcli.folders import config_file, lengths, locate
from bertcli.folders.init_from import check_max_length
from bertcli.model.architecture import Architecture
from bertcli.objectives import base, distillation, learner, registry
from bertcli.system.memory import count_parameters, pretraining_parameters
from bertcli.system.terminal import Report, say
from bertcli.tasks.data import LabeledRows, load_labeled_data
from bertcli.tasks.supervised import LabeledBatch, num_tokens
from bertcli.tokenizer.tokenizer import Tokenizer
from bertcli.training import recipe, resolve, task_models
from bertcli.training.lifecycle import steps_between_checkpoints

TOKENS_PER_SENTENCE = 22
"""Tokens per sentence of English text; assumed if there is no store."""
_ENDLESS = 1 << 40

MakeSteps = Callable[[int, int], Iterator[Sequence[MicroBatch]]]
"""A function: (rows per step, rows at once) -> steps of the run, more than the probe can take."""


def pretraining_sizes(config: PretrainRecipe, vocab_size: int) -> Architecture:
    """The sizes of the run that goes on from `model.init_from`; else those of the config.

    Raises `UserError` for a `config.json` that cannot be read.
    """
    objective = registry.OBJECTIVES[config.data.objective]
    if config.model.init_from is None:
        return config_file.new_architecture(config.model, vocab_size, objective=objective)

    def sizes_in(folder: Path) -> Architecture:
        return config_file.going_on(config.model)(config_file.read_architecture(folder / "config.json"))

    sizes = sizes_in(source := Path(config.model.init_from))
    return replace(sizes, generator=sizes_in(source / locate.GENERATOR)) if objective.generates else sizes


def pretraining_task(config: PretrainRecipe, tokenizer: Tokenizer | None) -> base.Task:
    """The task of the run. `tokenizer`: that of the run, which a student has from its teacher."""
    task = learner.learner_of(config.data.objective).task(config.training)
    if config.distillation is None:
        return task
    assert tokenizer is not None, "a student has its teacher's tokenizer"
    return distillation.taught(task, config, tokenizer)


@dataclass(frozen=True)
class Plan:
    """The plan of a run.

    Attributes:
        training: the training section of the config; the machine has not decided.
        parameters: part -> number of parameters; `trained` of them have gradients and moments.
        length: most tokens of a row.
        predicted: share of the tokens whose word is predicted.
        steps, tokens: number of steps and of real tokens in the full run.
        heldout_tokens: number of tokens that all evaluations read together.
        store_bytes: size of the token store; 0: there is none.
        kept: number of kept checkpoints; `models`: number of further folders, which hold only weights.
        build: a function that builds the model on the CPU.
        make_steps: a function that makes steps of the run, or similar ones.
        given: lines on assumptions.
        labeled: the rows of labeled items; None: the rows are full.
    """

    training: LoopRecipe
    architecture: Architecture
    parameters: dict[str, int]
    trained: int
    length: int
    predicted: float
    steps: int
    tokens: float
    heldout_tokens: float
    kept: int
    models: int
    task: base.Task
    build: Callable[[], nn.Module]
    make_steps: MakeSteps
    store_bytes: float = 0.0
    given: Sequence[str] = ()
    labeled: LabeledRows | None = None


def decide_here(plan: Plan) -> DecidedLoop:
    """The training section of the run on this machine. Raises as `training.resolve.decide_loop`."""
    return resolve.decide_loop(
        plan.training,
        plan.architecture,
        plan.length,
        tokens=plan.tokens,
        predicted=plan.predicted,
        labeled=plan.labeled,
    )


def plan_finetuning(config: FinetuneConfig, report: Report = say) -> Plan:
    """The plan of a fine-tuning run. Raises `UserError` for a model or labeled files that cannot be used."""
    source = Path(locate.resolve_model(config.model))
    lengths.check_length(source, config.task.max_length, "task.max_length")
    tokenizer = Tokenizer.load(source)
    data = load_labeled_data(config, tokenizer, report)
    model = task_models.new_task_model(config, source, data.task, say=report)
    training, items = resolve.finetuning_recipe(config, model).training, data.train.items
    tokens_N, labeled = np.array([num_tokens([item]) for item in items]), data.rows(training.batch_size)

    def make_steps(batch_size: int, rows: int) -> Iterator[Sequence[MicroBatch]]:
        """Steps that begin with the longest items, whose batch takes the most memory."""
        order = data.order(batch_size, config.training_seed)
        longest = np.argsort(-tokens_N, kind="stable")[:batch_size]
        for numbers in chain([longest], (order[step] for step in range(10**9))):
            batch = LabeledBatch(tuple(items[i] for i in numbers), tokenizer.pad_id)
            yield batch.micro_batches(Share(rows))

    # With folds, the runs together learn as many rows as that many runs, and answer each row once.
    per_epoch = data.order(training.batch_size, config.training_seed).steps_per_epoch
    runs, passes = max(1, len(config.parts)), per_epoch / math.ceil(len(items) / training.batch_size)
    steps = max(1, round(training.epochs * per_epoch))
    evaluations = math.ceil(steps / (config.evaluation.every_steps or per_epoch))
    saves = math.ceil(steps / steps_between_checkpoints(config.checkpoint.every_steps, per_epoch))
    dev_tokens = num_tokens(data.dev.items) if data.dev else 0
    is_of_folds = config.folds is not None and config.fold is None
    return Plan(
        training=training,
        architecture=model.architecture,
        parameters=count_parameters(model),
        trained=sum(parameter.numel() for parameter in model.parameters() if parameter.requires_grad),
        length=max(item.length for item in items),
        predicted=0.0,
        steps=runs * steps,
        tokens=runs * training.epochs * labeled.tokens * passes,
        heldout_tokens=evaluations * (labeled.tokens if is_of_folds else runs * dev_tokens),
        kept=(runs + is_of_folds) * min(config.checkpoint.keep_last, saves),
        models=runs * (2 if data.dev or is_of_folds else 1) + 2 * is_of_folds,
        task=task_models.trained_task(config, data.task, tokenizer),
        build=lambda: model,
        make_steps=make_steps,
        labeled=labeled,
    )


def plan_pretraining(config: PretrainConfig, report: Report = say) -> Plan:
    """The plan of the run. Raises `UserError` for missing text or model, or a store that does not match."""
    config = recipe.decide_recipe(config, report)
    check_max_length(config)
    is_built = (matching.store_folder(config) / manifest.MANIFEST).is_file()
    store = prepare_store(config, report) if is_built else None
    data, objective = config.data, registry.OBJECTIVES[config.data.objective]
    mask_rate, is_pair = max(ends(data.mask_rate)), objective.pairs.is_pair
    tokenizer = matching.load_given_tokenizer(config) if store is None else store.tokenizer
    vocab_size = config.tokenizer.vocab_size if tokenizer is None else tokenizer.vocab_size
    sizes = pretraining_sizes(config, vocab_size)
    shared = config_file.sharing(config.model, sizes.family) if sizes.generator else "tied"
    parameters = pretraining_parameters(sizes, is_pair, shared)
    steps, text_tokens, heldout_tokens, store_bytes = _amounts(config, store, vocab_size)

    def make_steps(batch_size: int, rows: int) -> Iterator[Sequence[MicroBatch]]:
        share = Share(rows)
        if store is None:
            return synthetic_steps(
                vocab_size, batch_size, data.max_length, share=share, objective=objective, mask_rate=mask_rate
            )
        sizes = BatchSizes(batch_size)
        stream = BatchStream(store.train, store.tokenizer, data, seed=config.seed, sizes=sizes)
        return stream.steps(0, _ENDLESS, share, workers=0)

    # A vocabulary that is not trained yet will have rows as WordPiece has them.
    special = 2 + is_pair if tokenizer is None else tokenizer.frame.cost(is_pair)
    saves = math.ceil(steps / config.checkpoint.every_steps)
    given = []
    if store is None:
        given.append(
            f"the store is not built yet: {vocab_size:,} entries in the vocabulary, "
            f"{recipe.BYTES_PER_TOKEN} bytes of text a token ({text_tokens:,.0f} tokens), full rows"
        )
    if config.distillation is not None:
        given.append("the teacher's weights come on top of the memory")
    return Plan(
        training=with_values(config.training, {"ramp_steps": ramp_steps(config, steps)}),
        architecture=sizes,
        parameters=parameters,
        trained=sum(parameters.values()),
        length=data.max_length,
        predicted=mask_rate * (data.max_length - special) / data.max_length,
        steps=steps,
        tokens=_tokens(config, steps),
        heldout_tokens=heldout_tokens * math.ceil(steps / config.evaluation.every_steps),
        store_bytes=store_bytes,
        kept=min(config.checkpoint.keep_last, saves),
        models=1,
        task=pretraining_task(config, tokenizer),
        build=lambda: learner.learner_of(data.objective).build(config.model, sizes),
        make_steps=make_steps,
        given=given,
    )


def _amounts(
    config: PretrainRecipe, store: token_store.OpenStore | None, vocab_size: int
) -> tuple[int, float, float, float]:
    """Number of steps, of training tokens, of tokens that an evaluation reads, and bytes of the store.

    Without a store, they are estimated from the size of the files.
    """
    training, fraction = config.training, config.corpus.heldout_fraction
    at_most = config.evaluation.batches * training.largest_batch * config.data.max_length
    is_pair = registry.OBJECTIVES[config.data.objective].pairs.is_pair

    def evaluated(heldout: float) -> float:
        """A text that fits is read once for its words, and once more for its pairs."""
        return min(at_most, heldout) * (2 if is_pair and heldout <= at_most else 1)

    if store is not None:
        steps = num_steps(config, store.tokenizer.frame, store.train.num_tokens)
        store_bytes = float(sum(store.manifest.arrays.values()))
        return steps, store.manifest.train.tokens, evaluated(store.heldout.num_tokens), store_bytes
    found = files.corpus_files(config.corpus, matching.output_paths(config))
    tokens = sample.text_bytes(found) / recipe.BYTES_PER_TOKEN * (1 - fraction)
    steps = training.steps or DEFAULT_STEPS
    if training.epochs is not None:
        steps = math.ceil(training.epochs * tokens / (mean_of(training.batch_size) * config.data.max_length))
    store_bytes = tokens * (token_store.ids_dtype(vocab_size).itemsize + 8 / TOKENS_PER_SENTENCE)
    return steps, tokens, evaluated(tokens * fraction / (1 - fraction)), store_bytes


def _tokens(config: PretrainRecipe, steps: int) -> int:
    """Number of tokens of all steps, if every row is full."""
    data, sizes = config.data, BatchSizes(config.training.batch_size, ramp_steps(config, steps))
    return sizes.before(steps) * data.max_length
