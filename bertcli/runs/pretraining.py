"""A pretraining run: raw text -> a model folder."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from bertcli.cards.model_card import model_card
from bertcli.config.schema import PretrainConfig
from bertcli.data.pair_rules import PAIR_RULES
from bertcli.data.random import make_key
from bertcli.data.share import MicroBatch
from bertcli.data.stream import BatchStream
from bertcli.distributed import ranks, wrapping
from bertcli.evaluation.evaluate import Scores, evaluate
from bertcli.evaluation.heldout import HeldoutBatches
from bertcli.hf.folder import load_model_folder, save_model_folder
from bertcli.hf.locate import locate_init_from
from bertcli.model.build import architecture, tile_positions
from bertcli.model.pretraining import PretrainingModel
from bertcli.runs.health import Health
from bertcli.runs.lifecycle import Run, live
from bertcli.runs.preconditions import check_pretraining
from bertcli.runs.pretraining_verdict import verdict
from bertcli.runs.recipe import decide_recipe
from bertcli.runs.resolve import adopt_decisions, loop_settings, own_share, resolve_config
from bertcli.runs.store_identity import check_same_store, store_identity
from bertcli.store.build import prepare_store
from bertcli.store.fit import misfits
from bertcli.store.token_store import OpenStore
from bertcli.store.vocabulary import given_tokenizer
from bertcli.tasks.masked_language import MaskedLanguage
from bertcli.terminal import say


def pretrain(config: PretrainConfig, resume: bool, overwrite: bool) -> Path:
    """Run it, on every rank; returns the model folder. Raises as `lifecycle.live`."""
    config = ranks.first_then_all(lambda: locate_init_from(config))
    source = Path(config.model.init_from) if config.model.init_from else None
    return live(Pretraining(config, source), resume, overwrite)


class Pretraining(Run[PretrainConfig, Path]):
    """Masked words, and with some values of `data.objective` the labels of pairs."""

    verb = "pretrain"
    model: PretrainingModel
    store: OpenStore
    stream: BatchStream
    heldout: HeldoutBatches | None = None

    def check(self) -> None:
        check_pretraining(self.config)

    def adopt(self, saved: PretrainConfig) -> None:
        self.config = adopt_decisions(self.config, saved)

    def prepare(self) -> None:
        self.config = config = ranks.on_first(lambda: decide_recipe(self.config, say))
        self.store = store = prepare_store(config, say, team=ranks)
        if (vocabulary := given_tokenizer(config)) is not None:
            for line in misfits(store.manifest, vocabulary):
                say(f"warning: {line}")
        batch_size = config.training.batch_size
        self.stream = BatchStream(
            store.train, store.tokenizer, config.data, seed=config.seed, batch_size=batch_size
        )
        self.model = _new_model(config, store)
        self.config = ranks.on_first(lambda: resolve_config(config, self.model.architecture, self.stream))
        training = self.config.training
        assert training.steps is not None
        self.steps, self.share = training.steps, own_share(training)
        self.loop = loop_settings(training, config.seed, self.steps, warmup_steps=training.warmup_steps)
        self.model.body.encoder.activation_checkpointing = training.activation_checkpointing
        self.model.to(self.loop.device)
        if store.heldout.num_documents:
            self.heldout = HeldoutBatches(store.heldout, store.tokenizer, config.data, batch_size=batch_size)
            if self.heldout.pairs is not self.stream.pairs:
                say("warning: the held-out documents have no sentence pairs: only MLM is evaluated")
        self.task = task = MaskedLanguage(self.stream.pairs, compiled=training.compile is True)
        references = task.references(
            self.model.architecture, store.manifest.unigram_entropy, fresh=self.source is None
        )
        short_steps, short_length = config.data.short_steps, config.data.short_length
        self.health = Health(references, self.steps, short_steps, short_length=short_length)

    def identity(self) -> dict[str, Any]:
        return store_identity(self.store)

    def compare(self, before: dict[str, Any]) -> None:
        check_same_store(before, self.store, self.folder.data)

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
            f"run: {training.steps:,} steps of {training.batch_size} rows (at most "
            f"{training.micro_batch_size} at once) x {data.max_length} tokens{short}, {training.precision} "
            f"on {training.device}{compiled}{processes}"
        )
        for line in [*self.stream.reuse_lines(self.steps), *self.health.lines()]:
            say(line)

    def micro_batches(self, first_step: int) -> Iterator[list[MicroBatch]]:
        """Just before the first long rows, positions without training become copies of trained ones."""
        data = self.config.data
        assert data.workers != "auto"
        steps = self.stream.steps(first_step, self.steps, self.share, data.workers)
        for step, micro_batches in enumerate(steps, first_step):
            positions = self.model.body.embeddings.position
            if step and step == data.short_steps and positions is not None:
                table_TD = positions.weight.detach()
                offset = self.model.architecture.position_offset
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
                steps=heldout.steps(self.share, self.config.evaluation.batches),
                device=self.loop.device,
                precision=self.loop.precision,
            )

        return evaluate_heldout

    def read_weights(self, folder: Path) -> dict[str, Tensor]:
        return load_model_folder(folder).model.state_dict()

    def save_model(self, folder: Path, weights: Mapping[str, Tensor], card: str | None = None) -> None:
        save_model_folder(
            folder,
            model=self.model,
            tokenizer=self.store.tokenizer,
            card=card,
            trained_length=self.config.data.max_length,
            weights=weights,
        )

    def finish(self, scores: Scores | None) -> Path:
        """The model is written even without a new step: a kill may have left that of an earlier end."""
        if scores is None and (evaluate_heldout := self.evaluator()):
            scores = evaluate_heldout()
        references = self.health.references
        line = verdict(scores, references, self.config, sizes=self.model.architecture)
        say(line)
        card = model_card(
            self.config, self.store, self.model, references=references, scores=scores, verdict=line
        )
        self.publish(self.folder.model, wrapping.full_weights(self.model), card)
        return self.folder.model


def _new_model(config: PretrainConfig, store: OpenStore) -> PretrainingModel:
    """Fresh weights, or those of `model.init_from`; weights that the folder lacks are new and printed."""
    torch.manual_seed(int(make_key(config.seed, "init")))
    is_pair = PAIR_RULES[config.data.objective].is_pair
    if config.model.init_from is None:
        return PretrainingModel(architecture(config.model, store.tokenizer.vocab_size), pair_head=is_pair)
    source = Path(config.model.init_from)
    loaded = load_model_folder(source, nsp=is_pair, dropout=config.model.dropout)
    say(f"starting from the weights of {source} ({len(loaded.report.loaded)} tensors)")
    if loaded.report.new:
        say(f"  new ({', '.join(loaded.report.new_parts())}): {', '.join(loaded.report.new)}")
    if loaded.report.left_aside:
        say(f"  left aside: {', '.join(loaded.report.left_aside)}")
    return loaded.model
