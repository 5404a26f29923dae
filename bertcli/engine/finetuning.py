"""A fine-tuning run from top to bottom: config in, task model out."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch

from bertcli.config.finetune import FinetuneConfig
from bertcli.data.like_lengths import LikeLengthOrder
from bertcli.data.random import make_key
from bertcli.engine.best import BestModel, metric_value
from bertcli.engine.checkpoint import RunState, load_optimizer, load_state, newest_checkpoint, save_checkpoint
from bertcli.engine.evaluate import Scores
from bertcli.engine.fit import FitSettings, fit
from bertcli.engine.judge import judge
from bertcli.engine.labelled_data import LabelledData, check_same_data, load_labelled_data
from bertcli.engine.loop import LoopSettings, train
from bertcli.engine.metrics_log import MetricsLog, cut_back, read_metrics
from bertcli.engine.optimizer import build_optimizer, freeze, layer_rate_scale
from bertcli.engine.progress import Progress, say
from bertcli.engine.resolve import adopt_loop_decisions, loop_settings, resolve_loop
from bertcli.engine.run_folder import RunFolder, check_resumable
from bertcli.engine.task_card import task_card
from bertcli.errors import UserError
from bertcli.files import disk_errors, write_folder
from bertcli.hf.fill import LoadReport
from bertcli.hf.lengths import check_length
from bertcli.hf.locate import resolve_model
from bertcli.hf.task_folder import load_for_finetuning, load_task_folder, save_task_folder
from bertcli.model.task_models import TaskModel
from bertcli.tasks.labelled import LabelledBatch, Supervised
from bertcli.text.tokenizer import Tokenizer

SANITY_EXAMPLES = 8
"""Judged before the first step, so that a mistake in metric or dev file shows at once."""


@dataclass(frozen=True)
class Finetuned:
    """A finished run: its model folder and the scores of that model on the dev data (None: no dev data)."""

    model: Path
    scores: Scores | None
    metric: str


def finetune(config: FinetuneConfig, resume: bool, overwrite: bool) -> Finetuned:
    """Run it with one seed (`engine.seeds` takes several).

    Raises:
        UserError: bad input, a folder in use, a full disk, a run that diverged. What was saved stays whole.
        SystemExit: after SIGTERM or Ctrl-C, with a checkpoint saved.
    """
    source = resolve_model(config.model)
    config = config.model_copy(update={"model": str(source)})
    folder = RunFolder(Path(config.output_dir), FinetuneConfig)
    folder.claim(resume, overwrite)
    saved = folder.saved_config() if resume else None
    if saved is not None:
        training = adopt_loop_decisions(config.training, saved.training)
        config = config.model_copy(update={"training": training})

    if warning := check_length(source, config.task.max_length, "task.max_length"):
        say(f"warning: {warning}")
    tokenizer = Tokenizer.load(source)
    data = load_labelled_data(config, tokenizer, say)
    check_same_data(folder.data, config, data.task.labels)
    model = _new_model(config, source, data)
    training = resolve_loop(config.training, model.architecture, config.task.max_length)
    config = config.model_copy(update={"training": training})
    if saved is not None:
        check_resumable(saved, config, say)
    folder.save(config)
    return _Run(config, folder, tokenizer, data, model).to_the_end(resume)


def _new_model(config: FinetuneConfig, source: Path, data: LabelledData) -> TaskModel:
    """The source's body with the task's head; what was loaded, is new or was left aside is said by name."""
    torch.manual_seed(int(make_key(config.training_seed, "init")))
    loaded = load_for_finetuning(source, config.task.settings, data.task.labels)
    model = loaded.model
    _describe_source(source, loaded.report)
    if config.training.freeze_layers > model.architecture.layers:
        raise UserError(
            f"training.freeze_layers ({config.training.freeze_layers}): the model has only "
            f"{model.architecture.layers} layers"
        )
    freeze(model, config.training.freeze_layers)
    model.bert.encoder.activation_checkpointing = config.training.activation_checkpointing
    return model


def _describe_source(source: Path, report: LoadReport) -> None:
    say(f"model: {source}, {len(report.loaded)} tensors loaded")
    if report.new:
        say(f"  new: {', '.join(report.new)}")
    if report.left_aside:
        say(f"  left aside: {', '.join(report.left_aside)}")


@dataclass
class _Run:
    """All that the parts of one run need."""

    config: FinetuneConfig
    folder: RunFolder[FinetuneConfig]
    tokenizer: Tokenizer
    data: LabelledData
    model: TaskModel

    def to_the_end(self, resume: bool) -> Finetuned:
        config, folder, training = self.config, self.folder, self.config.training
        order = LikeLengthOrder(
            np.array([item.length for item in self.data.train.items]),
            training.batch_size,
            config.training_seed,
        )
        steps = max(1, round(training.epochs * order.steps_per_epoch))
        loop = loop_settings(training, config.training_seed, steps, round(training.warmup_ratio * steps))
        layers = self.model.architecture.layers
        scale = layer_rate_scale(training.layer_decay, layers) if training.layer_decay else lambda name: 1.0
        optimizer = build_optimizer(self.model.to(loop.device), training.betas, training.weight_decay, scale)
        state = self._resume_state(optimizer) if resume else RunState()
        cut_back(folder.metrics, state.step)
        metric = config.task.metric or self.data.task.metric
        rows = read_metrics(folder.metrics) if folder.metrics.exists() else []
        best = BestModel(folder.checkpoints / "best", metric, training.early_stopping, rows)
        if self.data.dev and not rows:
            metric_value(self._judge(loop, SANITY_EXAMPLES), metric)
        self._describe(steps, order.steps_per_epoch)

        is_finished = state.step >= steps or best.is_settled
        if not is_finished:
            self._train(order, steps, loop, optimizer, state, best)
        return self._finish(loop, best, metric)

    def _train(
        self,
        order: LikeLengthOrder,
        steps: int,
        loop: LoopSettings,
        optimizer: torch.optim.AdamW,
        state: RunState,
        best: BestModel,
    ) -> None:
        config, folder = self.config, self.folder
        settings = FitSettings(
            steps=steps,
            log_every=config.logging.every_steps,
            evaluate_every=config.evaluation.every_steps or order.steps_per_epoch,
            save_every=config.checkpoint.every_steps or order.steps_per_epoch,
            max_bad_steps=config.training.max_bad_steps,
            steps_per_epoch=order.steps_per_epoch,
        )

        def is_enough(scores: Scores, state: RunState) -> bool:
            best.consider(scores, self._save_model)
            return best.is_settled

        def save(state: RunState) -> Path:
            return save_checkpoint(
                folder.checkpoints,
                state,
                self.model,
                optimizer,
                self._save_model,
                config.checkpoint.keep_last,
            )

        log = MetricsLog(folder.metrics, config.logging.tensorboard)
        progress = Progress("finetune", state.step, steps, config.logging.every_steps)
        step_model = torch.compile(self.model, dynamic=True) if config.training.compile else self.model
        reports = train(
            step_model,  # pyright: ignore[reportArgumentType]
            Supervised(self.data.task),
            self._batches(order, state.step, steps),
            optimizer,
            loop,
            state.step,
        )
        evaluate = (lambda: self._judge(loop)) if self.data.dev else None
        try:
            fit(reports, state, settings, None, evaluate, save, log, progress, is_enough)
        finally:
            progress.close()
            log.close()

    def _batches(self, order: LikeLengthOrder, first: int, last: int) -> Iterator[LabelledBatch]:
        items = self.data.train.items
        for step in range(first, last):
            yield LabelledBatch(tuple(items[i] for i in order[step]), self.tokenizer.pad_id)

    def _judge(self, loop: LoopSettings, at_most: int | None = None) -> Scores:
        assert self.data.dev is not None
        examples, items = self.data.dev.examples[:at_most], self.data.dev.items
        if at_most is not None:
            items = [item for item in items if item.example < at_most]
        scores, _ = judge(
            self.model,
            self.data.task,
            examples,
            items,
            self.tokenizer.pad_id,
            loop.device,
            loop.precision,
            loop.micro_batch_size,
        )
        return scores

    def _save_model(self, path: Path, card: str | None = None) -> None:
        settings, labels = self.config.task.settings, self.data.task.labels
        save_task_folder(path, self.model, self.tokenizer, settings, labels, card)

    def _resume_state(self, optimizer: torch.optim.Optimizer) -> RunState:
        checkpoint = newest_checkpoint(self.folder.checkpoints, say)
        if checkpoint is None:
            say(f"{self.folder.checkpoints} holds no checkpoint: starting from the first step")
            return RunState()
        self.model.load_state_dict(load_task_folder(checkpoint / "model").model.state_dict())
        load_optimizer(checkpoint, self.model, optimizer)
        say(f"going on from {checkpoint}")
        return load_state(checkpoint)

    def _finish(self, loop: LoopSettings, best: BestModel, metric: str) -> Finetuned:
        """The best model, or without dev data the last one, as `model/` with its card."""
        scores = None
        if self.data.dev is not None:
            self.model.load_state_dict(load_task_folder(best.folder).model.state_dict())
            scores = self._judge(loop)
        card = task_card(self.config, self.model.architecture, self.data, scores)
        with disk_errors(f"{self.folder.model}: the model could not be written"):
            write_folder(self.folder.model, lambda path: self._save_model(path, card))
        return Finetuned(self.folder.model, scores, metric)

    def _describe(self, steps: int, steps_per_epoch: int) -> None:
        training = self.config.training
        counts = [(p.numel(), p.requires_grad) for p in self.model.parameters()]
        everything = sum(count for count, _ in counts)
        trained = sum(count for count, is_trained in counts if is_trained)
        say(
            f"run: {everything:,} parameters, {trained:,} of them trained; {steps:,} steps of "
            f"{training.batch_size} rows, {steps_per_epoch:,} an epoch, {training.precision} on "
            f"{training.device}"
        )
