"""A pretraining run from top to bottom: config in, model folder out."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from bertcli.distributed import wrapping, ranks
from bertcli.config.schema import PretrainConfig
from bertcli.data.random import make_key
from bertcli.data.share import MicroBatch
from bertcli.data.stream import BatchStream
from bertcli.checkpoints.checkpoint import RunState, go_on_from, newest_checkpoint
from bertcli.checkpoints.writer import CheckpointWriter
from bertcli.engine.compiling import compile_layers
from bertcli.evaluation.evaluate import Scores, evaluate
from bertcli.runs.fit import FitSettings, fit
from bertcli.runs.health import References
from bertcli.evaluation.heldout import HeldoutBatches
from bertcli.engine.loop import train
from bertcli.checkpoints.metrics_log import MetricsLog, cut_back
from bertcli.cards.model_card import model_card
from bertcli.engine.optimizer import build_optimizer
from bertcli.runs.preconditions import check_pretraining
from bertcli.runs.progress import Progress
from bertcli.terminal import say
from bertcli.runs.resolve import adopt_decisions, loop_settings, own_share, resolve_config
from bertcli.checkpoints.run_folder import RunFolder, check_resumable
from bertcli.runs.store_identity import check_same_store, note_store
from bertcli.runs.pretraining_verdict import verdict
from bertcli.files import disk_errors
from bertcli.hf.folder import load_model_folder, save_model_folder
from bertcli.hf.locate import locate_init_from
from bertcli.model.build import architecture
from bertcli.model.embeddings import tile_positions
from bertcli.model.init import expected_first_mlm_loss
from bertcli.model.pretraining import BertForPreTraining
from bertcli.owned.folders import write_folder
from bertcli.runs.recipe import decide_recipe
from bertcli.store.build import prepare_store
from bertcli.store.fit import misfits
from bertcli.store.token_store import OpenStore
from bertcli.store.vocabulary import given_tokenizer
from bertcli.tasks.pretraining import PretrainingTask


def pretrain(config: PretrainConfig, resume: bool, overwrite: bool) -> Path:
    """Run it, on every rank; returns the model folder.

    Raises:
        UserError: bad input, a folder in use, a full disk, a run that diverged. What was saved stays whole.
        SystemExit: after a signal to stop, with a checkpoint saved.
    """
    config = ranks.first_then_all(lambda: locate_init_from(config))
    ranks.on_first(lambda: check_pretraining(config))
    folder = RunFolder(Path(config.output_dir), PretrainConfig)
    source = Path(config.model.init_from) if config.model.init_from else None
    with ranks.first_holds(folder.claim(resume, overwrite, source)):
        return _pretrain(config, folder, resume)


def _pretrain(config: PretrainConfig, folder: RunFolder[PretrainConfig], resume: bool) -> Path:
    saved = ranks.on_first(folder.saved_config) if resume else None
    if saved is not None:
        config = adopt_decisions(config, saved)
    config = ranks.on_first(lambda: decide_recipe(config, say))

    store = prepare_store(config, say, team=ranks)
    if (vocabulary := given_tokenizer(config)) is not None:
        for line in misfits(store.manifest, vocabulary):
            say(f"warning: {line}")
    stream = BatchStream(store.train, store.tokenizer, config.data, config.seed, config.training.batch_size)
    model = _new_model(config, store, stream.with_nsp)
    config = ranks.on_first(lambda: _settle(config, saved, folder, store, model, stream))

    training = config.training
    assert training.steps is not None
    model.bert.encoder.activation_checkpointing = training.activation_checkpointing
    checkpoint = ranks.on_first(lambda: newest_checkpoint(folder.checkpoints, say)) if resume else None
    if checkpoint is not None:
        model.load_state_dict(load_model_folder(checkpoint / "model").model.state_dict())
    if training.compile:
        compile_layers(model)
    trained = wrapping.spread(model.to(ranks.own_device(torch.device(training.device))), training.parallel)
    optimizer = build_optimizer(model, training.betas, training.weight_decay)
    state = RunState()
    if checkpoint is not None:
        state = go_on_from(checkpoint, model, optimizer, say)
    elif resume:
        say(f"{folder.checkpoints} holds no checkpoint to go on from: starting from the first step")
    every = max(each.logging.every_steps for each in (config, saved) if each is not None)
    rows = ranks.on_first(lambda: cut_back(folder.metrics, state.step, every, say))
    if state.step >= training.steps:
        say(f"{folder.root} is finished: {state.step} of {training.steps} steps; more with training.steps")

    heldout = None
    if store.heldout.num_documents:
        heldout = HeldoutBatches(store.heldout, store.tokenizer, config.data, training.batch_size)
        if stream.with_nsp and not heldout.with_nsp:
            say("warning: the held-out documents give no sentence pairs: they measure MLM alone")
    references = References(
        first_mlm_loss=None if config.model.init_from else expected_first_mlm_loss(model.architecture),
        unigram_entropy=store.manifest.unigram_entropy,
        with_nsp=stream.with_nsp,
        short_steps=config.data.short_steps,
        short_length=config.data.short_length,
    )
    _describe_run(config, model, stream, references)

    scores = _train(
        config, folder, store, stream, heldout, model, trained, optimizer, state, rows, references
    )
    # A kill may have left the model of an earlier end: it is written even where no step was taken.
    judgment = verdict(scores, store.manifest.unigram_entropy, config, model.architecture)
    say(judgment)
    card, weights = model_card(config, store, model, scores, judgment), wrapping.whole_weights(model)

    def save_model(path: Path) -> None:
        save_model_folder(path, model, store.tokenizer, card, config.data.max_length, weights)

    with disk_errors(f"{folder.model}: the model could not be written"):
        ranks.on_first(lambda: write_folder(folder.model, save_model))
    return folder.model


def _settle(
    config: PretrainConfig,
    saved: PretrainConfig | None,
    folder: RunFolder[PretrainConfig],
    store: OpenStore,
    model: BertForPreTraining,
    stream: BatchStream,
) -> PretrainConfig:
    """Decide what is left to decide, compare it with the `saved` run that is resumed, and write it down."""
    config = resolve_config(config, model.architecture, stream)
    if saved is not None:
        check_resumable(saved, config, say)
        check_same_store(folder.data, store)
    folder.accept(config)
    note_store(folder.data, store)
    return config


def _new_model(config: PretrainConfig, store: OpenStore, with_nsp: bool) -> BertForPreTraining:
    """Fresh weights, or those of `model.init_from`; what that folder lacks is new and named."""
    torch.manual_seed(int(make_key(config.seed, "init")))
    if config.model.init_from is None:
        return BertForPreTraining(architecture(config.model, store.tokenizer.vocab_size), nsp=with_nsp)
    source = Path(config.model.init_from)
    loaded = load_model_folder(source, nsp=with_nsp, dropout=config.model.dropout)
    say(f"going on from the weights of {source} ({len(loaded.report.loaded)} tensors)")
    if loaded.report.new:
        say(f"  new ({', '.join(loaded.report.new_parts())}): {', '.join(loaded.report.new)}")
    if loaded.report.left_aside:
        say(f"  left aside: {', '.join(loaded.report.left_aside)}")
    return loaded.model


def _train(
    config: PretrainConfig,
    folder: RunFolder[PretrainConfig],
    store: OpenStore,
    stream: BatchStream,
    heldout: HeldoutBatches | None,
    model: BertForPreTraining,
    trained: nn.Module,
    optimizer: torch.optim.AdamW,
    state: RunState,
    rows: list[dict[str, Any]],
    references: References,
) -> Scores | None:
    """`trained` is what `wrapping.spread` made of `model`; `rows` is what the log holds of the run."""
    training = config.training
    task = PretrainingTask(compiled=training.compile is True)
    steps = training.steps
    assert steps is not None
    assert config.data.workers != "auto"
    loop, share = loop_settings(training, config.seed, steps, training.warmup_steps), own_share(training)
    settings = FitSettings(
        steps=steps,
        log_every=config.logging.every_steps,
        evaluate_every=config.evaluation.every_steps,
        save_every=config.checkpoint.every_steps,
        max_bad_steps=training.max_bad_steps,
    )

    def evaluate_heldout() -> Scores:
        assert heldout is not None
        batches = heldout.steps(share, config.evaluation.batches)
        return evaluate(model, task, batches, loop.device, loop.precision)

    def save_model(path: Path, weights: Mapping[str, Tensor]) -> None:
        save_model_folder(path, model, store.tokenizer, None, config.data.max_length, weights)

    checkpoints = CheckpointWriter(
        folder.checkpoints, model, optimizer, save_model, config.checkpoint.keep_last
    )
    log = MetricsLog(folder.metrics, config.logging.tensorboard)
    progress = Progress("pretrain", state.step, steps, config.logging.every_steps)
    batches = stream.steps(state.step, steps, share, config.data.workers)
    reports = train(
        trained,
        task,
        _lengthened(batches, state.step, config, model),
        optimizer,
        loop,
        state.step,
        state.loss_scale,
    )
    try:
        evaluate_or_none = evaluate_heldout if heldout else None
        _, scores = fit(
            reports, state, rows, settings, references, evaluate_or_none, checkpoints, log, progress
        )
    finally:
        progress.close()
        log.close()
    if scores is None and heldout:  # resumed after its last step
        scores = evaluate_heldout()
    return scores


def _lengthened(
    steps: Iterator[list[MicroBatch]], first_step: int, config: PretrainConfig, model: BertForPreTraining
) -> Iterator[list[MicroBatch]]:
    """The steps; just before the first long one, positions that no short row had copy those that were."""
    for step, micro_batches in enumerate(steps, first_step):
        if step and step == config.data.short_steps:
            table_TD = model.bert.embeddings.position.weight.detach()
            tiled_TD = tile_positions(wrapping.whole(table_TD), config.data.short_length)
            table_TD.copy_(wrapping.part_like(table_TD, tiled_TD))
        yield micro_batches


def _describe_run(
    config: PretrainConfig, model: BertForPreTraining, stream: BatchStream, references: References
) -> None:
    parameters = sum(parameter.numel() for parameter in model.parameters())
    processes = f", {ranks.num_ranks()} ranks ({config.training.parallel})" if ranks.num_ranks() > 1 else ""
    training, data = config.training, config.data
    short = f" ({data.short_length} in the first {data.short_steps:,} steps)" if data.short_steps else ""
    how = " (compiled: the first step waits for that)" if training.compile else ""
    say(
        f"model: {model.architecture.layers} layers x {model.architecture.hidden}, vocabulary "
        f"{model.architecture.vocab_size:,}, {parameters:,} parameters"
    )
    say(
        f"run: {training.steps:,} steps of {training.batch_size} rows (at most {training.micro_batch_size} "
        f"at once) x {data.max_length} tokens{short}, {training.precision} on {training.device}"
        f"{how}{processes}"
    )
    for line in [*stream.reuse_lines(training.steps or 0), *references.lines()]:
        say(line)
