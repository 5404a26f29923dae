"""The stages of a pretraining run: raw text -> a model folder."""

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

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
from bertcli.folders.lengths import length_after, untrained_positions
from bertcli.folders.locate import locate_init_from
from bertcli.folders.run_layout import KeptVerdict
from bertcli.folders.sealed import find_damage
from bertcli.model.encoder import encoders
from bertcli.model.init import position_tables, tile_positions
from bertcli.model.pretraining import LanguageModel
from bertcli.objectives.distillation import start_like, taught
from bertcli.objectives.learner import Learner, learner_of
from bertcli.reports.cards import model_card
from bertcli.reports.pretraining_verdict import Health, verdict
from bertcli.system.terminal import say
from bertcli.training import ranks, wrapping
from bertcli.training.checkpoint import RunState, free_path, load_state, newest_checkpoint, newest_path
from bertcli.training.closing import closing_lines, lost_evaluations
from bertcli.training.evaluate import BestEvaluation, Scores, evaluate
from bertcli.training.gain import Meter
from bertcli.training.heldout import HeldoutBatches
from bertcli.training.identity import check_same_store, pretraining_inputs, store_identity
from bertcli.training.lifecycle import Run, run_stages
from bertcli.training.metrics_log import read_metrics
from bertcli.training.optimizer import decay_begin
from bertcli.training.recipe import decide_recipe
from bertcli.training.resolve import check_pretraining, decide_pretraining, loop_settings, own_share
from bertcli.training.run_folder import Input


def pretrain(config: PretrainConfig, resume: bool, overwrite: bool) -> tuple[Path, OpenStore]:
    """Run a pretraining on every rank; return its model folder and its store. Raises as `run_stages`."""
    config = ranks.first_then_all(lambda: locate_init_from(config))
    source = Path(config.model.init_from) if config.model.init_from else None
    return run_stages(Pretraining(config, source), resume, overwrite)


class Pretraining(Run[DecidedPretraining, tuple[Path, OpenStore]]):
    """The run of the objective `data.objective` on the rows of a token store."""

    verb = "pretrain"
    asked: PretrainConfig
    model: LanguageModel
    store: OpenStore
    stream: BatchStream
    heldout: HeldoutBatches | None = None
    best: BestEvaluation

    @property
    def learner(self) -> Learner:
        """The learner of the objective."""
        return learner_of(self.config.data.objective)

    def check(self) -> None:
        check_pretraining(self.asked)

    def inputs(self) -> Iterator[Input]:
        yield from pretraining_inputs(self.asked)
        yield Input("corpus.store", "", store_folder(self.asked))

    def _check_store(self, manifest: Manifest) -> None:
        if not self.is_resumed:
            check_known(self.asked, manifest.unk_rate)

    def prepare(self) -> None:
        recipe = ranks.on_first(lambda: decide_recipe(self.asked, say))
        self.store = store = prepare_store(recipe, say, team=ranks, check=self._check_store)
        for line in misfits(recipe, store.manifest):
            say(f"warning: {line}")
        self.stream = training_stream(recipe, store)
        self.steps = num_steps(recipe, store.tokenizer.frame, store.train.num_tokens)
        torch.manual_seed(int(make_key(recipe.seed, "init")))
        self.model = learner_of(recipe.data.objective).start(recipe, store.tokenizer)
        architecture = self.model.architecture
        config = ranks.on_first(lambda: decide_pretraining(recipe, architecture, self.steps))
        self.config, training, self.share = config, config.training, own_share(config.training)
        if training.schedule == "stable-decay":
            self.branch_step = decay_begin(self.steps, training.decay_share)
        self.loop = loop_settings(
            training,
            config.seed,
            self.steps,
            warmup_steps=training.warmup_steps,
            decay_share=training.decay_share,
        )
        for encoder in encoders(self.model):
            encoder.activation_checkpointing = training.activation_checkpointing
        self.model.to(self.loop.device)
        if store.heldout.num_documents:
            self.heldout = HeldoutBatches(
                store.heldout,
                store.tokenizer,
                config.data,
                batch_size=training.largest_batch,
                at_most=config.evaluation.batches,
            )
            if self.heldout.pairs is not self.stream.pairs:
                say("warning: the held-out documents have no sentence pairs: only MLM is evaluated")
        self.task = self.learner.task(training)
        fresh = self.source is None and config.distillation is None
        if config.distillation is not None:
            self.task = task = taught(self.task, config, store.tokenizer)
            if self.source is None:
                start_like(self.model.words, task.teacher)
        entropy, mask_rate = store.manifest.unigram_entropy, ends(config.data.mask_rate)[1]
        references = self.learner.references(
            self.model.architecture, entropy, fresh=fresh, mask_rate=mask_rate
        )
        short_steps, short_length = config.data.short_steps, config.data.short_length
        self.health = Health(references, self.steps, short_steps, short_length=short_length)

    def last_good(self) -> Path | None:
        """The newest usable checkpoint. `stable-decay` excludes those from the decay of a shorter run, and
        `checkpoint.keep_best` those since a lost best model. Raises `UserError` if evaluations are lost."""
        if self.config.checkpoint.keep_best and self.folder.best.exists() and not self._evaluations():
            raise lost_evaluations(self.folder)
        if self.branch_step is None:
            newest = newest_checkpoint(self.folder, say)
            lost = None if newest is None else self._lost_best(load_state(newest).step)
            return newest if lost is None else newest_checkpoint(self.folder, say, lambda at: at.step < lost)
        share = self.config.training.decay_share
        fallen: list[int] = []

        def usable(state: RunState) -> bool:
            good = state.planned == self.steps or state.step <= decay_begin(state.planned, share)
            if not good:
                fallen.append(state.step)
            return good

        found = newest_checkpoint(self.folder, say, usable)
        if found and fallen:
            say(f"going back to {found.name}: the learning rate of the shorter run fell after it")
        return found

    def _lost_best(self, step: int) -> int | None:
        """The step of the best model up to `step` if that model has to be trained again; else None."""
        rows = [row for row in self._evaluations() if row["step"] <= step]
        if not self.config.checkpoint.keep_best or not rows:
            return None
        best = newest_path(self.folder.best)
        if (damage := find_damage(best)) is None:
            return None
        lost = BestEvaluation("loss", None, rows).step
        say(f"warning: {best} is damaged ({damage}); going back to before step {lost} to train it again")
        return lost

    def _evaluations(self) -> list[dict[str, Any]]:
        return [row for row in read_metrics(self.folder.metrics) if row["split"] == "heldout"]

    def work_until(self, step: int) -> float:
        return self.stream.tokens_until(step)

    def read_log(self, rows: list[dict[str, Any]]) -> None:
        self.best = BestEvaluation("loss", None, rows if self.config.checkpoint.keep_best else [])

    def reason_to_stop(self, scores: Scores, state: RunState) -> str | None:
        """Save the model if it is the best so far and `checkpoint.keep_best` is set; return None."""
        if self.config.checkpoint.keep_best and self.best.consider(state.step, scores):
            folder = ranks.on_first(lambda: free_path(self.folder.best))
            self.publish(folder, wrapping.full_weights(self.model))
        return None

    def identity(self) -> dict[str, Any]:
        return store_identity(self.store, self.config)

    def compare(self, before: dict[str, Any]) -> None:
        check_same_store(before, self.identity(), self.store.folder, path=self.folder.data)

    def describe(self) -> None:
        sizes, training, data = self.model.architecture, self.config.training, self.config.data
        parameters = sum(parameter.numel() for parameter in self.model.parameters())
        processes = f", {ranks.num_ranks()} ranks ({training.parallel})" if ranks.num_ranks() > 1 else ""
        short = f" ({data.short_length} in the first {data.short_steps:,} steps)" if data.short_steps else ""
        compiled = " (compiled: the first step takes longer)" if training.compile else ""
        say(
            f"model: {sizes.layers} layers x {sizes.hidden}, vocabulary {sizes.vocab_size:,}, {parameters:,} "
            "parameters"
        )
        say(
            f"run: {self.steps:,} steps of {shown(training.batch_size)} rows (at most "
            f"{training.micro_batch_size} at once) x {data.max_length} tokens{short}, {training.precision} "
            f"on {training.device}{compiled}{processes}"
        )
        untrained = untrained_positions(sizes, length_after(self.source, data.max_length))
        for line in [*untrained, *self.stream.reuse_lines(self.steps), *self.health.lines()]:
            say(line)

    def micro_batches(self, first_step: int) -> Iterator[list[MicroBatch]]:
        """This rank's share of each step; just before the first long rows, trained positions are tiled."""
        data = self.config.data
        steps = self.stream.steps(first_step, self.steps, self.share, data.workers)
        for step, micro_batches in enumerate(steps, first_step):
            if step and step == data.short_steps:
                for table in position_tables(self.model):
                    table_TD, offset = table.detach(), self.model.architecture.position_offset
                    tiled_TD = tile_positions(wrapping.full_tensor(table_TD), data.short_length, offset)
                    table_TD.copy_(wrapping.shard_like(table_TD, tiled_TD))
            yield micro_batches

    def evaluator(self) -> Callable[[], Scores] | None:
        if (heldout := self.heldout) is None:
            return None

        def evaluate_heldout() -> Scores:
            return evaluate(
                model=self.model,
                task=self.task,
                steps=heldout.steps(self.share),
                device=self.loop.device,
                precision=self.loop.precision,
            )

        return evaluate_heldout

    def read_weights(self, folder: Path) -> dict[str, Tensor]:
        return self.learner.load(folder, self.config.model).state_dict()

    def save_model(self, folder: Path, weights: Mapping[str, Tensor], card: str | None = None) -> None:
        length = length_after(self.source, self.config.data.max_length)
        given = {"trained_length": length, "weights": weights, "card": card}
        self.learner.save(folder, self.model, self.store.tokenizer, **given)

    def finish(self, scores: Scores | None) -> tuple[Path, OpenStore]:
        """Write the final model, even without a new step: a kill may have left that of an earlier end."""
        rows, evaluate_heldout = ranks.on_first(self._evaluations), self.evaluator()
        chosen: list[str] = []
        if evaluate_heldout and self.config.checkpoint.keep_best:
            best = ranks.on_first(lambda: newest_path(self.folder.best))
            wrapping.load_full_weights(self.model, self.read_weights(best))
            scores, rows = self.best.scores, []
            chosen = [f"the model is the best by held-out loss: that of step {self.best.step:,}"]
        if scores is None and evaluate_heldout:
            scores = evaluate_heldout()
        references = self.health.references
        weights = wrapping.full_weights(self.model)
        said = verdict(scores, references, self.config, sizes=self.model.architecture, rows=rows)
        lines = [said, *chosen, *self._closing_lines(weights)]
        for line in lines:
            say(line)
        card = model_card(
            self.config,
            self.store,
            self.model,
            references=references,
            scores=scores,
            lines=lines,
        )
        self.publish(self.folder.model, weights, card)
        self.keep_verdict(KeptVerdict(self.steps, lines))
        return self.folder.model, self.store

    def _closing_lines(self, weights: Mapping[str, Tensor]) -> list[str]:
        meter = Meter(
            tokenizer=self.store.tokenizer,
            max_length=self.config.data.max_length,
            batch_size=self.config.training.largest_batch,
            batches=self.config.evaluation.batches,
            share=self.share,
            device=self.loop.device,
            precision=self.loop.precision,
        )
        return list(
            closing_lines(
                self.config, self.source, self.store, model=self.model, weights=weights, meter=meter
            )
        )
