"""A pretraining run from top to bottom: config in, model folder out."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import torch

from bertcli.config.schema import PretrainConfig
from bertcli.data.batch import Batch
from bertcli.data.random import make_key
from bertcli.data.stream import BatchStream
from bertcli.engine.checkpoint import (
    RunState,
    load_optimizer,
    load_state,
    newest_checkpoint,
    save_checkpoint,
)
from bertcli.engine.evaluate import Scores, evaluate
from bertcli.engine.fit import FitSettings, fit
from bertcli.engine.health import References
from bertcli.engine.heldout import HeldoutBatches
from bertcli.engine.loop import train
from bertcli.engine.metrics_log import MetricsLog, cut_back
from bertcli.engine.model_card import model_card
from bertcli.engine.optimizer import build_optimizer
from bertcli.engine.progress import Progress, say
from bertcli.engine.resolve import adopt_decisions, loop_settings, resolve_config
from bertcli.engine.run_folder import RunFolder, check_resumable
from bertcli.files import disk_errors, write_folder
from bertcli.hf.folder import load_model_folder, save_model_folder
from bertcli.hf.locate import locate_init_from
from bertcli.model.build import architecture
from bertcli.model.init import expected_first_mlm_loss
from bertcli.model.pretraining import BertForPreTraining
from bertcli.store.build import prepare_store
from bertcli.store.token_store import OpenStore
from bertcli.tasks.pretraining import PretrainingTask


def pretrain(config: PretrainConfig, resume: bool, overwrite: bool) -> Path:
    """Run it; returns the model folder.

    Raises:
        UserError: bad input, a folder in use, a full disk, a run that diverged. What was saved stays whole.
        SystemExit: after SIGTERM or Ctrl-C, with a checkpoint saved.
    """
    config = locate_init_from(config)
    folder = RunFolder(Path(config.output_dir), PretrainConfig)
    with folder.claim(resume, overwrite):
        return _pretrain(config, folder, resume)


def _pretrain(config: PretrainConfig, folder: RunFolder[PretrainConfig], resume: bool) -> Path:
    saved = folder.saved_config() if resume else None
    if saved is not None:
        config = adopt_decisions(config, saved)

    store = prepare_store(config, say)
    stream = BatchStream(store.train, store.tokenizer, config.data, config.seed, config.training.batch_size)
    model = _new_model(config, store, stream.with_nsp)
    config = resolve_config(config, model.architecture, stream)
    if saved is not None:
        check_resumable(saved, config, say)
    folder.save(config)

    device, steps = torch.device(config.training.device), config.training.steps
    assert steps is not None
    model.bert.encoder.activation_checkpointing = config.training.activation_checkpointing
    optimizer = build_optimizer(model.to(device), config.training.betas, config.training.weight_decay)
    state = _resume_state(folder, model, optimizer) if resume else RunState()
    cut_back(folder.metrics, state.step)
    if state.step >= steps:  # the model is written again: a kill may have left that of an earlier end
        say(f"{folder.root} is finished: {state.step} of {steps} steps; raise training.steps to go on")

    heldout = None
    if store.heldout.num_documents:
        heldout = HeldoutBatches(store.heldout, store.tokenizer, config.data, config.training.batch_size)
        if stream.with_nsp and not heldout.with_nsp:
            say("warning: the held-out documents give no sentence pairs: they measure MLM alone")
    references = References(
        first_mlm_loss=None if config.model.init_from else expected_first_mlm_loss(model.architecture),
        unigram_entropy=store.manifest.unigram_entropy,
        with_nsp=stream.with_nsp,
    )
    _describe_run(config, model, stream, references)

    scores = _train(config, folder, store, stream, heldout, model, optimizer, state, references)
    card = model_card(config, store, model, scores)
    with disk_errors(f"{folder.model}: the model could not be written"):
        length = config.data.max_length
        write_folder(folder.model, lambda path: save_model_folder(path, model, store.tokenizer, card, length))
    return folder.model


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


def _resume_state(
    folder: RunFolder[PretrainConfig], model: BertForPreTraining, optimizer: torch.optim.Optimizer
) -> RunState:
    checkpoint = newest_checkpoint(folder.checkpoints, say)
    if checkpoint is None:
        say(f"{folder.checkpoints} holds no checkpoint: starting from the first step")
        return RunState()
    model.load_state_dict(load_model_folder(checkpoint / "model").model.state_dict())
    load_optimizer(checkpoint, model, optimizer)
    state = load_state(checkpoint)
    say(f"going on from {checkpoint}, step {state.step}")
    return state


def _train(
    config: PretrainConfig,
    folder: RunFolder[PretrainConfig],
    store: OpenStore,
    stream: BatchStream,
    heldout: HeldoutBatches | None,
    model: BertForPreTraining,
    optimizer: torch.optim.AdamW,
    state: RunState,
    references: References,
) -> Scores | None:
    training, task = config.training, PretrainingTask()
    steps = training.steps
    assert steps is not None
    assert config.data.workers != "auto"
    loop = loop_settings(training, config.seed, steps, training.warmup_steps)
    settings = FitSettings(
        steps=steps,
        log_every=config.logging.every_steps,
        evaluate_every=config.evaluation.every_steps,
        save_every=config.checkpoint.every_steps,
        max_bad_steps=training.max_bad_steps,
    )

    def evaluate_heldout() -> Scores:
        assert heldout is not None
        batches = heldout.batches(config.evaluation.batches)
        return evaluate(model, task, batches, loop.device, loop.precision, loop.micro_batch_size)

    def save(state: RunState) -> Path:
        def save_model(path: Path) -> None:
            save_model_folder(path, model, store.tokenizer, None, config.data.max_length)

        return save_checkpoint(
            folder.checkpoints, state, model, optimizer, save_model, config.checkpoint.keep_last
        )

    log = MetricsLog(folder.metrics, config.logging.tensorboard)
    progress = Progress("pretrain", state.step, steps, config.logging.every_steps)
    batches = _lengthened(stream.steps(state.step, steps, config.data.workers), state.step, config, model)
    step_model = torch.compile(model) if training.compile else model
    reports = train(step_model, task, batches, optimizer, loop, state.step)  # pyright: ignore[reportArgumentType]
    try:
        _, scores = fit(
            reports, state, settings, references, evaluate_heldout if heldout else None, save, log, progress
        )
    finally:
        progress.close()
        log.close()
    if scores is None and heldout:  # resumed after its last step
        scores = evaluate_heldout()
    return scores


def _lengthened(
    batches: Iterator[Batch], first_step: int, config: PretrainConfig, model: BertForPreTraining
) -> Iterator[Batch]:
    """The batches; just before the first long one, positions that no short row had copy those that were."""
    for step, batch in enumerate(batches, first_step):
        if step and step == config.data.short_steps:
            model.bert.embeddings.tile_positions(config.data.short_length)
        yield batch


def _describe_run(
    config: PretrainConfig, model: BertForPreTraining, stream: BatchStream, references: References
) -> None:
    parameters = sum(parameter.numel() for parameter in model.parameters())
    training, data = config.training, config.data
    short = f" ({data.short_length} in the first {data.short_steps:,} steps)" if data.short_steps else ""
    say(
        f"model: {model.architecture.layers} layers x {model.architecture.hidden}, vocabulary "
        f"{model.architecture.vocab_size:,}, {parameters:,} parameters"
    )
    say(
        f"run: {training.steps:,} steps of {training.batch_size} rows (at most {training.micro_batch_size} "
        f"at once) x {data.max_length} tokens{short}, {training.precision} on {training.device}"
    )
    for line in [*stream.reuse_lines(training.steps or 0), *references.lines()]:
        say(line)
