"""Decisions at the start of a run: a value for every `auto` and default that depends on store or machine."""

import math
from dataclasses import replace

from bertcli.batches.share import Share, ramp_steps
from bertcli.config.finetune import FinetuneConfig
from bertcli.config.run import (
    DecidedFinetuning,
    DecidedLoop,
    DecidedPretraining,
    FinetuneRecipe,
    LoopRecipe,
    PretrainRecipe,
    as_kind,
    decided_loop,
    with_decisions,
    with_values,
)
from bertcli.config.schema import PretrainConfig
from bertcli.config.section import DECAY_SHARE, ends, mean_of
from bertcli.corpus.chunks import find_corpus
from bertcli.corpus.files import list_files
from bertcli.corpus.manifest import MANIFEST
from bertcli.corpus.matching import given_tokenizer, output_paths, store_folder
from bertcli.model.architecture import Architecture
from bertcli.model.encoder import BodyModel
from bertcli.system import hardware
from bertcli.system.errors import UserError
from bertcli.system.memory import StepSizes
from bertcli.system.terminal import say
from bertcli.tasks.data import LabeledData, LabeledRows
from bertcli.tasks.files import check_extras, find_labeled_file
from bertcli.training import ranks
from bertcli.training.followers import check_trackers
from bertcli.training.loop import LoopSettings
from bertcli.training.optimizer import finetuning_rate, learning_rate
from bertcli.training.wrapping import is_worth_compiling


def decide_pretraining(recipe: PretrainRecipe, architecture: Architecture, steps: int) -> DecidedPretraining:
    """The config with every value that a run of `steps` steps will use.

    Raises `UserError` for a device that is missing.
    """
    data = recipe.data
    decided = {"steps": steps, "epochs": None, "ramp_steps": ramp_steps(recipe, steps)}
    training = decide_loop(
        with_values(recipe.training, decided),
        architecture,
        data.max_length,
        tokens=steps * mean_of(recipe.training.batch_size) * data.max_length,
        predicted=max(ends(data.mask_rate)),
    )
    sizes = {size: getattr(architecture, size) for size in ("layers", "hidden", "heads", "feed_forward")}
    sizes["max_positions"] = architecture.usable_positions
    accents = {} if given_tokenizer(recipe) else {"strip_accents": recipe.tokenizer.strips_accents()}
    values = {
        "data": {"workers": hardware.resolve_workers(data.workers, hardware.resolve_device(training.device))},
        "model": sizes,
        "tokenizer": accents,
        "training": training,
    }
    return as_kind(DecidedPretraining, recipe, values)


def finetuning_recipe(config: FinetuneConfig, model: BodyModel) -> FinetuneRecipe:
    """The config with a value for each `auto` that the weights of the model decide."""
    training = {"optimizer": "adamw", "learning_rate": finetuning_rate(model)}
    return as_kind(FinetuneRecipe, with_decisions(config, {"training": training}), {})


def decide_finetuning(
    recipe: FinetuneRecipe, architecture: Architecture, data: LabeledData
) -> DecidedFinetuning:
    """The config with every value that the run will use. Raises `UserError` for a device that is missing."""
    rows = data.rows(recipe.training.batch_size)
    training = decide_loop(
        recipe.training,
        architecture,
        recipe.task.max_length,
        tokens=recipe.training.epochs * rows.tokens,
        labeled=rows,
    )
    return as_kind(DecidedFinetuning, recipe, {"training": training})


def decide_loop(
    training: LoopRecipe,
    architecture: Architecture,
    length: int,
    tokens: float,
    predicted: float = 0.0,
    labeled: LabeledRows | None = None,
) -> DecidedLoop:
    """The training section with every `auto` decided, for rows of at most `length` tokens.

    Args:
        tokens: number of tokens of the complete run.
        predicted: the share of tokens whose word is predicted.
        labeled: the rows of labeled items; None: the rows are full.

    Raises `UserError` for a device that is missing.
    """
    device = hardware.resolve_device(training.device)
    precision = hardware.resolve_precision(training.precision, device)
    micro_batch_size = training.micro_batch_size
    sizes = StepSizes(
        rows=1,
        length=length,
        predicted=predicted,
        half=precision != "fp32",
        checkpointing=training.activation_checkpointing,
        on_cpu=device.type == "cpu",
    )
    num_ranks = ranks.num_local_ranks()
    joint = labeled.joint if labeled else None
    if micro_batch_size == "auto":
        fast = hardware.fast_rows(sizes, labeled.mean_length if labeled else None)
        at_most = joint or min(training.largest_batch, fast)
        micro_batch_size = hardware.fitting_rows(
            architecture, sizes, at_most=at_most, device=device, num_local_ranks=num_ranks
        )
    micro_batch_size = min(micro_batch_size, joint or training.largest_batch)
    at_once = max(micro_batch_size, labeled.largest if labeled else 1)
    if warning := hardware.crowded(
        architecture, replace(sizes, rows=at_once), device, num_local_ranks=num_ranks
    ):
        fewer = at_once > micro_batch_size
        say(f"{warning}; a row has {at_once} windows: task.max_windows limits them" if fewer else warning)
    compiled = training.compile
    if compiled == "auto":
        compiled = is_worth_compiling(
            architecture, tokens, micro_batch_size * length, length=length, predicted=predicted, device=device
        )
    decided = {"micro_batch_size": micro_batch_size, "precision": precision, "device": str(device)}
    return decided_loop(training, decided | {"compile": compiled})


def loop_settings(
    training: DecidedLoop, seed: int, steps: int, warmup_steps: int, decay_share: float = DECAY_SHARE
) -> LoopSettings:
    """The settings of the loop from a decided training section."""
    return LoopSettings(
        seed=seed,
        device=ranks.own_device(hardware.resolve_device(training.device)),
        precision=training.precision,
        max_grad_norm=training.max_grad_norm,
        rate=lambda step: learning_rate(
            step,
            training.learning_rate,
            warmup_steps,
            steps=steps,
            schedule=training.schedule,
            decay_share=decay_share,
        ),
    )


def own_share(training: DecidedLoop, joint: int | None = None) -> Share:
    """This rank's share of each step; in the largest step every rank has rows, if there are enough.

    `joint`: as in `tasks.data.LabeledRows`.
    """
    rows_a_rank = math.ceil((joint or training.largest_batch) / ranks.num_ranks())
    return Share(min(training.micro_batch_size, rows_a_rank), ranks.rank(), ranks.num_ranks())


def check_pretraining(config: PretrainConfig) -> None:
    """Raise `UserError` if corpus files or needed packages are missing, or keys contradict each other."""
    if config.checkpoint.keep_best and config.training.schedule == "stable-decay":
        raise UserError(
            "checkpoint.keep_best: true is not possible with training.schedule: stable-decay, because a "
            "longer run goes on from a checkpoint that may be older than the best model; set "
            "checkpoint.keep_best to false"
        )
    check_trackers(config.logging.trackers)
    if not (store_folder(config) / MANIFEST).is_file():  # if there is a store, the corpus is not read
        find_corpus(config.corpus, output_paths(config))
    list_files(config.corpus.general or [])


def check_finetuning(config: FinetuneConfig) -> None:
    """Raise `UserError` if a labeled file or a needed optional package is missing."""
    check_trackers(config.logging.trackers)
    for name in (config.task.train, config.task.dev):
        if name is not None:
            check_extras(find_labeled_file(name), config.task.settings)
