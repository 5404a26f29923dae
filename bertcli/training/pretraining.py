"""A pretraining run: raw text -> a model folder."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import torch
from torch import Tensor

from bertcli.batches.order import make_key
from bertcli.batches.share import MicroBatch, Share, num_steps
from bertcli.batches.stream import BatchStream, training_stream
from bertcli.config.run import DecidedPretraining
from bertcli.config.schema import PretrainConfig
from bertcli.config.section import ends, shown
from bertcli.corpus.build import prepare_store
from bertcli.corpus.finish import check_known, misfits
from bertcli.corpus.manifest import Manifest
from bertcli.corpus.matching import store_folder
from bertcli.corpus.token_store import OpenStore
from bertcli.folders.lengths import length_after, untrained_positions
from bertcli.folders.locate import locate_init_from
from bertcli.folders.run_layout import KeptVerdict
from bertcli.model.encoder import encoders
from bertcli.model.init import position_tables, tile_positions
from bertcli.model.pretraining import LanguageModel
from bertcli.objectives.base import Task
from bertcli.objectives.distillation import start_like, taught
from bertcli.objectives.learner import Learner, learner_of
from bertcli.reports.cards import model_card
from bertcli.reports.pretraining_verdict import Health, verdict
from bertcli.system.terminal import say
from bertcli.training import ranks, wrapping
from bertcli.training.best import BestModel, heldout_rows
from bertcli.training.checkpoint import RunState
from bertcli.training.closing import closing_lines, resume_command
from bertcli.training.evaluate import Scores, evaluate
from bertcli.training.gain import Meter
from bertcli.training.heldout import HeldoutBatches
from bertcli.training.identity import check_same_store, pretraining_inputs, store_identity
from bertcli.training.lifecycle import Prepared, Run, claimed, take_steps
from bertcli.training.loop import LoopSettings
from bertcli.training.optimizer import decay_begin
from bertcli.training.recipe import decide_recipe
from bertcli.training.resolve import check_pretraining, decide_pretraining, loop_settings, own_share
from bertcli.training.run_folder import Input


def pretrain(config: PretrainConfig, resume: bool, overwrite: bool) -> tuple[Path, OpenStore]:
    """Run a pretraining on every rank; return its model folder and its store. Raises as `claimed`."""
    config = ranks.first_then_all(lambda: locate_init_from(config))
    ranks.on_first(lambda: check_pretraining(config))
    command = resume_command("pretrain", Path(config.output_dir))
    run = Run("pretrain", config, resume=resume, resume_command=command)
    with claimed(run, lambda: _inputs(config), overwrite):
        parts = _build(run.asked, is_resumed=run.saved is not None)
        store, path = parts.store, run.folder.data
        identity = ranks.on_first(lambda: store_identity(store, parts.config))
        run.compare(
            parts.config, identity, lambda old: check_same_store(old, identity, store.folder, path=path)
        )
        run.accept(parts.config, identity)
        prepared = _prepare(run, parts)
        scores = take_steps(run, prepared)
        _finish(run, parts, prepared, scores=scores)
    return run.folder.model, store


def _inputs(config: PretrainConfig) -> Iterator[Input]:
    yield from pretraining_inputs(config)
    yield Input("corpus.store", "", store_folder(config))


@dataclass(frozen=True)
class Parts:
    """The text, the model and all decisions of a pretraining.

    Attributes:
        source: the model folder that the run starts from; None: random weights.
        heldout: the batches of the held-out text; None: nothing is held out.
    """

    config: DecidedPretraining
    source: Path | None
    store: OpenStore
    stream: BatchStream
    heldout: HeldoutBatches | None
    model: LanguageModel
    task: Task
    loop: LoopSettings
    share: Share
    steps: int

    @property
    def learner(self) -> Learner:
        """The learner of the objective."""
        return learner_of(self.config.data.objective)


def _build(asked: PretrainConfig, is_resumed: bool) -> Parts:
    """Build store and model, and decide every `auto`; called on every rank."""
    recipe = ranks.on_first(lambda: decide_recipe(asked, say))

    def check(manifest: Manifest) -> None:
        if not is_resumed:
            check_known(asked, manifest.unk_rate)

    store = prepare_store(recipe, say, team=ranks, check=check)
    for line in misfits(recipe, store.manifest):
        say(f"warning: {line}")
    stream = training_stream(recipe, store)
    steps = num_steps(recipe, store.tokenizer.frame, store.train.num_tokens)
    learner = learner_of(recipe.data.objective)
    torch.manual_seed(int(make_key(recipe.seed, "init")))
    model = learner.start(recipe, store.tokenizer)
    architecture = model.architecture
    config = ranks.on_first(lambda: decide_pretraining(recipe, architecture, steps))
    training = config.training
    warmup, fall = training.warmup_steps, training.decay_share
    loop = loop_settings(training, config.seed, steps, warmup_steps=warmup, decay_share=fall)
    for encoder in encoders(model):
        encoder.activation_checkpointing = training.activation_checkpointing
    model.to(loop.device)
    heldout = _heldout(config, store, stream)
    source = None if config.model.init_from is None else Path(config.model.init_from)
    task = learner.task(training)
    if config.distillation is not None:
        task = taught(task, config, store.tokenizer)
        if source is None:
            start_like(model.words, task.teacher)
    return Parts(
        config=config,
        source=source,
        store=store,
        stream=stream,
        heldout=heldout,
        model=model,
        task=task,
        loop=loop,
        share=own_share(training),
        steps=steps,
    )


def _heldout(config: DecidedPretraining, store: OpenStore, stream: BatchStream) -> HeldoutBatches | None:
    if not store.heldout.num_documents:
        return None
    heldout = HeldoutBatches(
        store.heldout,
        store.tokenizer,
        config.data,
        batch_size=config.training.largest_batch,
        at_most=config.evaluation.batches,
    )
    if heldout.pairs is not stream.pairs:
        say("warning: the held-out documents have no sentence pairs: only MLM is evaluated")
    return heldout


def _prepare(run: Run[PretrainConfig], parts: Parts) -> Prepared:
    config, training = parts.config, parts.config.training
    health = _health(parts)
    has_best = parts.heldout is not None and config.checkpoint.keep_best
    falls = training.schedule == "stable-decay"
    return Prepared(
        config=config,
        model=parts.model,
        task=parts.task,
        loop=parts.loop,
        steps=parts.steps,
        micro_batches=partial(_micro_batches, parts),
        save_model=partial(_save, parts),
        read_weights=partial(_read_weights, parts),
        evaluate=None if parts.heldout is None else partial(_evaluate, parts, parts.heldout),
        best=BestModel(run.folder, "loss") if has_best else None,
        lines=[*_lines(parts), *health.lines()],
        health=health,
        work=parts.stream.tokens_until,
        usable=partial(_is_before_fall, parts) if falls else lambda state: True,
        branch_step=decay_begin(parts.steps, training.decay_share) if falls else None,
    )


def _health(parts: Parts) -> Health:
    config, data = parts.config, parts.config.data
    references = parts.learner.references(
        parts.model.architecture,
        parts.store.manifest.unigram_entropy,
        fresh=parts.source is None and config.distillation is None,
        mask_rate=ends(data.mask_rate)[1],
    )
    return Health(references, parts.steps, data.short_steps, short_length=data.short_length)


def _is_before_fall(parts: Parts, state: RunState) -> bool:
    """False for a checkpoint in which the learning rate of a shorter run fell already (`stable-decay`)."""
    if state.planned == parts.steps:
        return True
    last_step = decay_begin(state.planned, parts.config.training.decay_share)
    if state.step > last_step:
        why = f"the learning rate of the shorter run fell after step {last_step}"
        say(f"the checkpoint of step {state.step} is not used: {why}")
    return state.step <= last_step


def _lines(parts: Parts) -> Iterator[str]:
    sizes, training, data = parts.model.architecture, parts.config.training, parts.config.data
    parameters = sum(parameter.numel() for parameter in parts.model.parameters())
    processes = f", {ranks.num_ranks()} ranks ({training.parallel})" if ranks.num_ranks() > 1 else ""
    short = f" ({data.short_length} in the first {data.short_steps:,} steps)" if data.short_steps else ""
    compiled = " (compiled: the first step takes longer)" if training.compile else ""
    yield (
        f"model: {sizes.layers} layers x {sizes.hidden}, vocabulary {sizes.vocab_size:,}, {parameters:,} "
        "parameters"
    )
    yield (
        f"run: {parts.steps:,} steps of {shown(training.batch_size)} rows (at most "
        f"{training.micro_batch_size} at once) x {data.max_length} tokens{short}, {training.precision} "
        f"on {training.device}{compiled}{processes}"
    )
    yield from untrained_positions(sizes, length_after(parts.source, data.max_length))
    yield from parts.stream.reuse_lines(parts.steps)


def _micro_batches(parts: Parts, first_step: int) -> Iterator[list[MicroBatch]]:
    """This rank's share of each step; just before the first long rows, trained positions are tiled."""
    data = parts.config.data
    steps = parts.stream.steps(first_step, parts.steps, parts.share, data.workers)
    for step, micro_batches in enumerate(steps, first_step):
        if step and step == data.short_steps:
            for table in position_tables(parts.model):
                table_TD, offset = table.detach(), parts.model.architecture.position_offset
                tiled_TD = tile_positions(wrapping.full_tensor(table_TD), data.short_length, offset)
                table_TD.copy_(wrapping.shard_like(table_TD, tiled_TD))
        yield micro_batches


def _evaluate(parts: Parts, heldout: HeldoutBatches) -> Scores:
    return evaluate(
        model=parts.model,
        task=parts.task,
        steps=heldout.steps(parts.share),
        device=parts.loop.device,
        precision=parts.loop.precision,
    )


def _read_weights(parts: Parts, folder: Path) -> dict[str, Tensor]:
    return parts.learner.load(folder, parts.config.model).state_dict()


def _save(parts: Parts, folder: Path, weights: Mapping[str, Tensor], card: str | None = None) -> None:
    length = length_after(parts.source, parts.config.data.max_length)
    given = {"trained_length": length, "weights": weights, "card": card}
    parts.learner.save(folder, parts.model, parts.store.tokenizer, **given)


def _finish(run: Run[PretrainConfig], parts: Parts, prepared: Prepared, scores: Scores | None) -> None:
    """Write the final model, even without a new step: a kill may have left that of an earlier end.

    `scores`: the last evaluation; None: there was none.
    """
    rows = ranks.on_first(lambda: heldout_rows(run.folder.metrics))
    chosen: list[str] = []
    if prepared.best is not None:
        wrapping.load_full_weights(parts.model, prepared.read_weights(prepared.best.path()))
        best = prepared.best.evaluation
        scores, rows = best.scores, []
        chosen = [f"the model is the best by held-out loss: that of step {best.step:,}"]
    if scores is None and prepared.evaluate is not None:
        scores = prepared.evaluate()
    references, sizes = prepared.health.references, parts.model.architecture
    weights = wrapping.full_weights(parts.model)
    said = verdict(scores, references, parts.config, sizes=sizes, rows=rows)
    lines = [said, *chosen, *_closing_lines(parts, weights)]
    for line in lines:
        say(line)
    card = model_card(
        parts.config, parts.store, parts.model, references=references, scores=scores, lines=lines
    )
    run.publish(run.folder.model, partial(_save, parts, card=card), weights)
    run.keep_verdict(KeptVerdict(parts.steps, lines))


def _closing_lines(parts: Parts, weights: Mapping[str, Tensor]) -> Iterator[str]:
    config, store = parts.config, parts.store
    meter = Meter(
        tokenizer=store.tokenizer,
        max_length=config.data.max_length,
        batch_size=config.training.largest_batch,
        batches=config.evaluation.batches,
        share=parts.share,
        device=parts.loop.device,
        precision=parts.loop.precision,
    )
    return closing_lines(config, parts.source, store, model=parts.model, weights=weights, meter=meter)
