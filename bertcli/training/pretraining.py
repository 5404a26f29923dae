"""A pretraining run: raw text -> a model folder."""

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import torch
from torch import Tensor

from bertcli.batches.order import make_key
from bertcli.batches.share import MicroBatch, num_steps
from bertcli.batches.stream import BatchStream, training_stream
from bertcli.config.run import DecidedPretraining
from bertcli.config.schema import PretrainConfig
from bertcli.config.section import ends, shown
from bertcli.corpus.build import prepare_store
from bertcli.corpus.finish import check_known, misfits
from bertcli.corpus.manifest import Manifest
from bertcli.corpus.matching import store_folder
from bertcli.corpus.token_store import OpenStore
from bertcli.folders.init_from import check_max_length
from bertcli.folders.lengths import length_after, untrained_positions
from bertcli.folders.locate import locate_init_from
from bertcli.folders.run_layout import KeptVerdict
from bertcli.model.encoder import encoders
from bertcli.model.pretraining import LanguageModel
from bertcli.objectives.distillation import start_like, taught
from bertcli.objectives.learner import Learner, learner_of
from bertcli.reports.cards import model_card
from bertcli.reports.pretraining_verdict import Health, verdict
from bertcli.system.terminal import say
from bertcli.training import ranks, wrapping
from bertcli.training.best import BestModel, heldout_rows
from bertcli.training.checkpoint import RunState
from bertcli.training.fit import take_steps
from bertcli.training.gain import Meter, closing_measurements
from bertcli.training.heldout import HeldoutBatches
from bertcli.training.identity import check_same_store, pretraining_inputs, store_identity
from bertcli.training.lifecycle import Prepared, Run
from bertcli.training.optimizer import decay_begin
from bertcli.training.recipe import decide_recipe
from bertcli.training.resolve import check_pretraining, decide_pretraining, loop_settings, own_share
from bertcli.training.run_folder import Input
from bertcli.training.scores import Scores, evaluate, mixed


def pretrain(config: PretrainConfig, resume: bool, overwrite: bool) -> tuple[Path, OpenStore]:
    """Run a pretraining on every rank; return its model folder and its store. Raises as `Run.claimed`."""
    config = ranks.first_then_all(lambda: locate_init_from(config))
    ranks.on_first(lambda: check_pretraining(config))
    run = Run("pretrain", config, resume, given=Path(config.output_dir))
    with run.claimed(lambda: _inputs(config), overwrite):
        prepared = _prepare(run)
        store = prepared.store
        identity = ranks.on_first(lambda: store_identity(store, prepared.config))
        run.compare(prepared.config, identity, partial(check_same_store, store=store.folder))
        run.accept(prepared.config, identity)
        scores = take_steps(run, prepared)
        _finish(run, prepared, scores)
    return run.folder.model, store


def _inputs(config: PretrainConfig) -> Iterator[Input]:
    yield from pretraining_inputs(config)
    yield Input("corpus.store", "", store_folder(config))


@dataclass(frozen=True, kw_only=True)
class Pretraining(Prepared):
    """The text, the model and all decisions of a pretraining.

    Attributes:
        source: the model folder that the run starts from; None: random weights.
        heldout: the batches of the held-out text of each source that has any, by its name.
    """

    config: DecidedPretraining
    source: Path | None
    store: OpenStore
    stream: BatchStream
    heldout: dict[str, HeldoutBatches]
    learner: Learner
    model: LanguageModel

    @property
    def is_evaluated(self) -> bool:
        """Whether text is held out."""
        return bool(self.heldout)

    @property
    def shares(self) -> dict[str, float]:
        """The share of each source in the rows at the end, by its name."""
        corpus = self.config.corpus
        return dict(zip(corpus.source_names, self.store.manifest.shares(corpus), strict=True))

    @property
    def health(self) -> Health:
        """The reference values of the losses."""
        data = self.config.data
        references = self.learner.references(
            self.model.architecture,
            self.store.manifest.mixed_entropy(self.config.corpus),
            fresh=self.source is None and self.config.distillation is None,
            mask_rate=ends(data.mask_rate)[1],
        )
        return Health(references, self.steps)

    def lines(self) -> Iterator[str]:
        """Lines that say what is trained, and how."""
        sizes, training, data = self.model.architecture, self.config.training, self.config.data
        parameters = sum(parameter.numel() for parameter in self.model.parameters())
        processes = f", {ranks.num_ranks()} ranks ({training.parallel})" if ranks.num_ranks() > 1 else ""
        compiled = " (compiled: the first step takes longer)" if training.compile else ""
        yield (
            f"model: {sizes.layers} layers x {sizes.hidden}, vocabulary {sizes.vocab_size:,}, {parameters:,} "
            "parameters"
        )
        yield (
            f"run: {self.steps:,} steps of {shown(training.batch_size)} rows (at most "
            f"{training.micro_batch_size} at once) x {data.max_length} tokens, {training.precision} "
            f"on {training.device}{compiled}{processes}"
        )
        yield from untrained_positions(sizes, length_after(self.source, data.max_length))
        yield from self.stream.reuse_lines(self.steps, self.config.corpus.source_names)
        yield from self.health.lines()

    def micro_batches(self, first_step: int) -> Iterator[list[MicroBatch]]:
        """This rank's share of each step."""
        return self.stream.steps(first_step, self.steps, self.share, self.config.data.workers)

    def evaluate(self) -> Scores:
        """The scores of the model on the held-out text."""
        device, precision = self.loop.device, self.loop.precision
        scores = {
            name: evaluate(
                self.model, self.task, batches.steps(self.share), device=device, precision=precision
            )
            for name, batches in self.heldout.items()
        }
        return mixed(scores, self.shares)

    def save(self, folder: Path, weights: Mapping[str, Tensor], card: str | None = None) -> None:
        """Write a model folder."""
        length = length_after(self.source, self.config.data.max_length)
        given = {"trained_length": length, "weights": weights, "card": card}
        self.learner.save(folder, self.model, self.store.tokenizer, **given)

    def read_weights(self, folder: Path) -> dict[str, Tensor]:
        """The weights in a model folder: name in the model -> weight."""
        return self.learner.load(folder, self.config.model).state_dict()

    def work(self, steps: int) -> float:
        """The tokens of text in all steps up to a step."""
        return self.stream.tokens_until(steps)

    def is_usable(self, state: RunState) -> bool:
        """False for a checkpoint in which the learning rate of a shorter run fell already."""
        if self.branch_step is None or state.planned == self.steps:
            return True
        last_step = decay_begin(state.planned, self.config.training.decay_share)
        if state.step > last_step:
            say(
                f"the checkpoint of step {state.step} is not used: the learning rate of the shorter run fell "
                f"after step {last_step}"
            )
        return state.step <= last_step


def _prepare(run: Run[PretrainConfig]) -> Pretraining:
    """Build store and model, and decide every `auto`; called on every rank."""
    recipe = ranks.on_first(lambda: decide_recipe(run.asked, say))
    check_max_length(recipe)

    def check(manifest: Manifest) -> None:
        if run.saved is None:
            check_known(run.asked, manifest.unk_rate)

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
    keeps_best = heldout is not None and config.checkpoint.keep_best
    source = None if config.model.init_from is None else Path(config.model.init_from)
    task = learner.task(training)
    if config.distillation is not None:
        task = taught(task, config, store.tokenizer)
        if source is None:
            start_like(model.words, task.teacher)
    return Pretraining(
        config=config,
        source=source,
        store=store,
        stream=stream,
        heldout=heldout,
        learner=learner,
        model=model,
        task=task,
        loop=loop,
        share=own_share(training),
        steps=steps,
        best=BestModel(run.folder, "loss") if keeps_best else None,
        branch_step=decay_begin(steps, fall) if training.schedule == "stable-decay" else None,
    )


def _heldout(config: DecidedPretraining, store: OpenStore, stream: BatchStream) -> dict[str, HeldoutBatches]:
    """The held-out batches of each source; the sources share `evaluation.batches`."""
    names, size = config.corpus.source_names, config.training.largest_batch
    most = math.ceil(config.evaluation.batches / len(names))
    heldout: dict[str, HeldoutBatches] = {}
    for name, source in zip(names, store.heldout.sources, strict=True):
        which = f" of the source {name}" if len(names) > 1 else ""
        if source.num_documents:
            heldout[name] = HeldoutBatches(
                source, store.tokenizer, config.data, batch_size=size, at_most=most
            )
            if heldout[name].pairs is not stream.pairs:
                say(f"warning: the held-out documents{which} have no sentence pairs: only MLM is evaluated")
        elif store.heldout.num_documents:
            say(f"warning: no document{which} is held out, so its loss is not measured")
    return heldout


def _finish(run: Run[PretrainConfig], prepared: Pretraining, scores: Scores | None) -> None:
    """Write the final model, even without a new step: a kill may have left that of an earlier end.

    `scores`: the last evaluation; None: there was none.
    """
    config, model = prepared.config, prepared.model
    rows = ranks.on_first(lambda: heldout_rows(run.folder.metrics))
    chosen: list[str] = []
    if prepared.best is not None:
        wrapping.load_full_weights(model, prepared.read_weights(prepared.best.path()))
        scores, rows = prepared.best.scores, []
        chosen = [f"the model is the best by held-out loss: that of step {prepared.best.step:,}"]
    if scores is None and prepared.is_evaluated:
        scores = prepared.evaluate()
    references = prepared.health.references
    weights = wrapping.full_weights(model)
    said = verdict(scores, references, config, sizes=model.architecture, rows=rows)
    meter = Meter(config, prepared.store, prepared.share, loop=prepared.loop)
    lines = [said, *chosen, *closing_measurements(meter, prepared.source, model, weights=weights)]
    for line in lines:
        say(line)
    card = model_card(config, prepared.store, model, references=references, scores=scores, lines=lines)
    run.publish(run.folder.model, partial(prepared.save, card=card), weights)
    run.keep_verdict(KeptVerdict(prepared.steps, lines))
