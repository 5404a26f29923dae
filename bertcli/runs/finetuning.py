"""A fine-tuning run from top to bottom: config in, task model out."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import torch
from torch import nn

from bertcli.distributed import wrapping, ranks
from bertcli.config.finetune import FinetuneConfig
from bertcli.data.epochs import EpochOrder
from bertcli.data.share import MicroBatch
from bertcli.evaluation.best import BestEvaluation, metric_value, metric_values
from bertcli.checkpoints.checkpoint import RunState, go_on_from, load_state, newest_checkpoint
from bertcli.checkpoints.writer import CheckpointWriter
from bertcli.engine.compiling import compile_layers
from bertcli.evaluation.evaluate import Scores
from bertcli.runs.finetuned import Finetuned
from bertcli.runs.fit import FitSettings, fit
from bertcli.evaluation.task import judge
from bertcli.runs.task_identity import check_same_data, note_data
from bertcli.tasks.data import LabeledData, load_labeled_data
from bertcli.engine.loop import train
from bertcli.checkpoints.metrics_log import MetricsLog, cut_back, has_evaluation, read_metrics
from bertcli.runs.new_task_model import new_task_model
from bertcli.checkpoints.numbered import newest_path
from bertcli.engine.optimizer import build_optimizer, layer_rate_scale
from bertcli.runs.preconditions import check_finetuning
from bertcli.runs.progress import Progress
from bertcli.terminal import say
from bertcli.runs.resolve import adopt_loop_decisions, loop_settings, own_share, resolve_loop
from bertcli.checkpoints.run_folder import RunFolder, check_resumable
from bertcli.cards.task_card import task_card
from bertcli.evaluation.task_verdict import task_verdict
from bertcli.runs.task_weights import TaskWeights
from bertcli.hf.lengths import check_length
from bertcli.hf.locate import resolve_model
from bertcli.owned.sealed import find_damage
from bertcli.tasks.supervised import LabeledBatch, Supervised
from bertcli.text.tokenizer import Tokenizer

SANITY_EXAMPLES = 8
"""Judged before the first step, so that a mistake in metric or dev file shows at once."""


def finetune(
    config: FinetuneConfig, resume: bool, overwrite: bool, accepted: Callable[[], None] = lambda: None
) -> Finetuned:
    """Run it with one seed (`engine.seeds` takes several).

    `accepted` is called, on the first rank, once config, data and model are found to fit.

    Raises:
        UserError: bad input, a folder in use, a full disk, a run that diverged. What was saved stays whole.
        SystemExit: after a signal to stop, with a checkpoint saved.
    """
    source = ranks.first_then_all(lambda: resolve_model(config.model))
    config = config.model_copy(update={"model": str(source)})
    ranks.on_first(lambda: check_finetuning(config))
    folder = RunFolder(Path(config.output_dir), FinetuneConfig)
    with ranks.first_holds(folder.claim(resume, overwrite, source)):
        return _finetune(config, source, folder, resume, accepted)


def _finetune(
    config: FinetuneConfig,
    source: Path,
    folder: RunFolder[FinetuneConfig],
    resume: bool,
    accepted: Callable[[], None],
) -> Finetuned:
    saved = ranks.on_first(folder.saved_config) if resume else None
    if saved is not None:
        training = adopt_loop_decisions(config.training, saved.training)
        config = config.model_copy(update={"training": training})

    if warning := check_length(source, config.task.max_length, "task.max_length"):
        say(f"warning: {warning}")
    tokenizer = Tokenizer.load(source)
    data = ranks.first_then_all(lambda: load_labeled_data(config, tokenizer, say))
    model = new_task_model(config, source, data.task.labels)
    tokens = config.training.epochs * sum(item.length for item in data.train.items)
    training = resolve_loop(config.training, model.architecture, config.task.max_length, tokens)
    config = config.model_copy(update={"training": ranks.from_first(training)})

    def check_same() -> None:
        if saved is not None:
            check_resumable(saved, config, say)
            check_same_data(folder.data, config, data.task.labels)

    ranks.on_first(check_same)
    weights = TaskWeights(model, tokenizer, config.task.settings, data.task.labels)
    run = _Run(config, folder, data, weights)
    run.check_metric()

    def accept() -> None:
        folder.accept(config)
        note_data(folder.data, config, data.task.labels)
        accepted()

    ranks.on_first(accept)
    return run.to_the_end(resume, saved)


class _Run:
    """All that the parts of one run need."""

    def __init__(
        self,
        config: FinetuneConfig,
        folder: RunFolder[FinetuneConfig],
        data: LabeledData,
        weights: TaskWeights,
    ):
        training = config.training
        self.order = EpochOrder(len(data.train.items), training.batch_size, config.training_seed)
        self.steps = max(1, round(training.epochs * self.order.steps_per_epoch))
        warmup_steps = round(training.warmup_ratio * self.steps)
        self.loop = loop_settings(training, config.training_seed, self.steps, warmup_steps)
        self.share = own_share(training)
        self.metric = config.task.metric or data.task.metric
        self.config, self.folder, self.data, self.weights = config, folder, data, weights
        self.model = weights.model.to(self.loop.device)

    def check_metric(self) -> None:
        """Raises `UserError` where the dev data cannot be judged by the metric."""
        if self.data.dev is not None and self.metric not in metric_values(self._judge(SANITY_EXAMPLES)):
            metric_value(self._judge(), self.metric)  # some need examples of a kind that the first ones lack

    def to_the_end(self, resume: bool, saved: FinetuneConfig | None) -> Finetuned:
        """From the first step, or the newest checkpoint's, to `model/`; `saved` is the config until now."""
        training, folder, model = self.config.training, self.folder, self.model
        checkpoint = ranks.on_first(self._last_good) if resume else None
        if checkpoint is not None:
            model.load_state_dict(self.weights.read(checkpoint / "model"))
        if training.compile:
            compile_layers(model)
        trained = wrapping.spread(model, training.parallel)
        optimizer = build_optimizer(
            model,
            training.betas,
            training.weight_decay,
            layer_rate_scale(training.layer_decay or 1.0, model.architecture.layers),
        )
        state = RunState()
        if checkpoint is not None:
            state = go_on_from(checkpoint, model, optimizer, say)
        elif resume:
            say(f"{folder.checkpoints} holds no checkpoint to go on from: starting from the first step")
        every = max(each.logging.every_steps for each in (self.config, saved) if each is not None)
        rows = ranks.on_first(lambda: cut_back(folder.metrics, state.step, every, say))
        best = BestEvaluation(self.metric, training.early_stopping, rows)
        is_judged = self.data.dev is None or has_evaluation(rows, state.step)
        if state.step >= self.steps and is_judged:
            say(f"{folder.root} is finished: {state.step} of {self.steps} steps")
        elif best.is_settled:
            say(f"{folder.root} is finished: stopped early at step {state.step} of {self.steps}")
        else:
            self._describe()
            self._train(trained, optimizer, state, rows, best)
        return self._finish(best)

    def _last_good(self) -> Path | None:
        """The newest checkpoint, or the newest from before the best model where that was lost or damaged."""
        checkpoints, best = self.folder.checkpoints, newest_path(self.folder.checkpoints / "best")
        newest = newest_checkpoint(checkpoints, say)
        if newest is None or self.data.dev is None:
            return newest
        rows = [row for row in read_metrics(self.folder.metrics) if row["split"] == "heldout"]
        if best.exists() and not rows:
            say(f"warning: {self.folder.metrics} has lost its evaluations; they are made again")
            return None
        rows = [row for row in rows if row["step"] <= load_state(newest).step]
        damage = find_damage(best) if rows else None
        if damage is None:
            return newest
        step = BestEvaluation(self.metric, None, rows).step
        say(f"warning: {best} is damaged ({damage}); going back to before step {step}, which brings it again")
        return newest_checkpoint(checkpoints, say, before_step=step)

    def _describe(self) -> None:
        training = self.config.training
        parameters = list(self.model.parameters())
        total = sum(parameter.numel() for parameter in parameters)
        trained = sum(parameter.numel() for parameter in parameters if parameter.requires_grad)
        say(
            f"run: {total:,} parameters, {trained:,} of them trained; {self.steps:,} steps of "
            f"{training.batch_size} rows, {self.order.steps_per_epoch:,} an epoch, {training.precision} on "
            f"{training.device}"
        )
        if self.data.dev is None:
            say("no dev data (task.dev or task.dev_fraction): nothing is measured, the last model is kept")

    def _train(
        self,
        trained: nn.Module,
        optimizer: torch.optim.AdamW,
        state: RunState,
        rows: list[dict[str, Any]],
        best: BestEvaluation,
    ) -> None:
        """`trained` is what `wrapping.spread` made of the model; `rows` is what the log holds of the run."""
        config, folder, epoch = self.config, self.folder, self.order.steps_per_epoch
        settings = FitSettings(
            steps=self.steps,
            log_every=config.logging.every_steps,
            evaluate_every=config.evaluation.every_steps or epoch,
            save_every=config.checkpoint.every_steps or epoch,
            max_bad_steps=config.training.max_bad_steps,
            steps_per_epoch=epoch,
        )
        checkpoints = CheckpointWriter(
            folder.checkpoints, self.model, optimizer, self.weights.save, config.checkpoint.keep_last
        )
        log = MetricsLog(folder.metrics, config.logging.tensorboard)
        progress = Progress("finetune", state.step, self.steps, config.logging.every_steps)

        def is_enough(scores: Scores, state: RunState) -> bool:
            if best.consider(state.step, scores):
                self.weights.keep_best(folder.checkpoints, wrapping.whole_weights(self.model))
            if best.is_settled and state.step < self.steps:
                progress.line(
                    f"stopping early at step {state.step}: no better {self.metric} in "
                    f"{config.training.early_stopping} evaluations (training.early_stopping)"
                )
            return best.is_settled

        reports = train(
            trained,
            Supervised(self.data.task),
            self._steps(state.step),
            optimizer,
            self.loop,
            state.step,
            state.loss_scale,
        )
        evaluate = self._judge if self.data.dev else None
        try:
            fit(reports, state, rows, settings, None, evaluate, checkpoints, log, progress, is_enough)
        finally:
            progress.close()
            log.close()

    def _steps(self, first_step: int) -> Iterator[list[MicroBatch]]:
        items = self.data.train.items
        for step in range(first_step, self.steps):
            batch = LabeledBatch(tuple(items[i] for i in self.order[step]), self.weights.tokenizer.pad_id)
            yield batch.micro_batches(self.share)

    def _judge(self, at_most: int | None = None) -> Scores:
        """The scores of the dev data, or of its first `at_most` examples."""
        assert self.data.dev is not None
        part, loop = self.data.dev.first(at_most), self.loop
        scores, _ = judge(
            self.model,
            self.data.task,
            part.examples,
            part.items,
            self.weights.tokenizer.pad_id,
            loop.device,
            loop.precision,
            self.share.micro_batch_size,
        )
        return scores

    def _finish(self, best: BestEvaluation) -> Finetuned:
        """The best model, or without dev data the last one, as `model/` with its card."""
        scores = verdict = None
        if self.data.dev is None:
            weights = wrapping.whole_weights(self.model)
        else:
            weights = self.weights.read_best(self.folder.checkpoints)
            wrapping.load_weights(self.model, weights)
            scores = best.scores or self._judge()
            verdict = task_verdict(self.config.task.settings, self.data.dev.examples, scores)
            say(f"best by {self.metric}: step {best.step}")
        card = task_card(self.config, self.model.architecture, self.data, scores, verdict)
        self.weights.replace(self.folder.model, weights, card)
        return Finetuned(self.folder.model, scores, verdict, self.metric)
