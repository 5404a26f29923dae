"""A fine-tuning run: a model folder and labeled files -> a task model."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from torch import Tensor

from bertcli.batches.order import EpochOrder
from bertcli.batches.share import MicroBatch
from bertcli.config.finetune import FinetuneConfig
from bertcli.config.run import DecidedFinetuning, with_values
from bertcli.config.task import TaskSettings
from bertcli.folders.lengths import LongRows, check_length, length_after
from bertcli.folders.locate import resolve_model
from bertcli.folders.model_files import write_model_files
from bertcli.folders.run_layout import KeptVerdict
from bertcli.folders.sealed import find_damage
from bertcli.folders.sentence_transformers import SentencePooling, write_pooling
from bertcli.folders.task_folder import declare_task, load_task_folder
from bertcli.inference.evaluate_task import evaluate_task
from bertcli.inference.predict import Runner
from bertcli.model.task_models import AS_THEY_ARE, TaskModel, VectorModel, restandardized
from bertcli.reports.cards import task_card
from bertcli.system.terminal import say
from bertcli.tasks.data import LabeledData, load_labeled_data
from bertcli.tasks.examples import Example
from bertcli.tasks.supervised import LabeledBatch
from bertcli.tasks.verdict import Verdict
from bertcli.tokenizer.tokenizer import Tokenizer
from bertcli.training import ranks, wrapping
from bertcli.training.checkpoint import RunState, free_path, load_state, newest_checkpoint, newest_path
from bertcli.training.closing import lost_evaluations, resume_command
from bertcli.training.evaluate import BestEvaluation, Scores, metric_value, metric_values
from bertcli.training.identity import check_same_data, finetuning_inputs, task_identity
from bertcli.training.lifecycle import Run, run_stages
from bertcli.training.metrics_log import read_metrics
from bertcli.training.optimizer import layer_rate_scale
from bertcli.training.resolve import check_finetuning, decide_finetuning, loop_settings, own_share
from bertcli.training.run_folder import Input
from bertcli.training.task_models import new_task_model, trained_task

SANITY_EXAMPLES = 8
"""Number of examples evaluated before the first step, to find a mistake in metric or dev file early."""


@dataclass(frozen=True)
class Finetuned:
    """A finished run.

    Attributes:
        model: the folder of the final model.
        scores, verdict: results of that model on the dev data; None: no dev data.
        metric: the metric that selected the model.
        examples: the dev data; if there is none, the training data.
    """

    model: Path
    scores: Scores | None
    verdict: Verdict | None
    metric: str
    examples: Sequence[Example]


def finetune(
    config: FinetuneConfig, resume: bool, overwrite: bool, accepted: Callable[[], None] = lambda: None
) -> Finetuned:
    """Fine-tune with one seed (`training.train`: several), on every rank; raises as `run_stages`."""
    source = ranks.first_then_all(lambda: resolve_model(config.model))
    config = with_values(config, {"model": str(source)})
    return run_stages(Finetuning(config, source), resume, overwrite, accepted=accepted)


class Finetuning(Run[DecidedFinetuning, Finetuned]):
    """The run of a labeled task; if there is dev data, it keeps the best model by a metric."""

    verb = "finetune"
    asked: FinetuneConfig
    model: TaskModel
    tokenizer: Tokenizer
    data: LabeledData
    order: EpochOrder
    best: BestEvaluation
    settings: TaskSettings
    """The settings of the task in the finished model."""

    @property
    def resume_command(self) -> str:
        """The command that resumes the run; with `seeds`, it resumes all of them together."""
        root = self.folder.root
        return resume_command(self.verb, root.parent if self.asked.seeds else root)

    def check(self) -> None:
        check_finetuning(self.asked)

    def inputs(self) -> Iterator[Input]:
        return finetuning_inputs(self.asked)

    def prepare(self) -> None:
        assert self.source is not None
        asked = self.asked
        check_length(self.source, asked.task.max_length, "task.max_length")
        self.tokenizer = Tokenizer.load(self.source)
        self.data = ranks.first_then_all(lambda: load_labeled_data(asked, self.tokenizer, say))
        long_rows = LongRows(self.source)
        for split in filter(None, (self.data.train, self.data.dev)):
            long_rows.count(item.length for item in split.items)
        long_rows.tell()
        self.model = new_task_model(
            asked,
            self.source,
            self.data.task.labels,
            say=say,
            standardization=self.data.task.standardization,
        )
        architecture = self.model.architecture
        config = ranks.on_first(lambda: decide_finetuning(asked, architecture, self.data))
        self.config, training = config, config.training
        self.order = EpochOrder(len(self.data.train.items), training.batch_size, config.training_seed)
        self.steps_per_epoch = self.order.steps_per_epoch
        self.steps = max(1, round(training.epochs * self.steps_per_epoch))
        warmup_steps = round(training.warmup_ratio * self.steps)
        self.loop = loop_settings(training, config.training_seed, self.steps, warmup_steps=warmup_steps)
        self.task = trained_task(config, self.data.task, self.tokenizer)
        self.share = own_share(training, self.data.joint_rows(training.batch_size))
        self.model.to(self.loop.device)

    @property
    def metric(self) -> str:
        """The metric that selects the best model."""
        return self.config.task.metric or self.data.task.metric

    def identity(self) -> dict[str, Any]:
        return task_identity(self.config, self.data.task.labels)

    def compare(self, before: dict[str, Any]) -> None:
        check_same_data(before, self.identity(), self.folder.data)

    def evaluate_once(self) -> None:
        """Raise `UserError` if the dev data cannot be evaluated by the metric."""
        if self.data.dev is not None and self.metric not in metric_values(self._evaluate(SANITY_EXAMPLES)):
            # Some metrics need kinds of examples that the first few may lack.
            metric_value(self._evaluate(), self.metric)

    def last_good(self) -> Path | None:
        """The newest checkpoint; if the best model is lost or damaged, the newest one before that model."""
        best = newest_path(self.folder.best)
        newest = newest_checkpoint(self.folder, say)
        if newest is None or self.data.dev is None:
            return newest
        rows = [row for row in read_metrics(self.folder.metrics) if row["split"] == "heldout"]
        if best.exists() and not rows:
            raise lost_evaluations(self.folder)
        rows = [row for row in rows if row["step"] <= load_state(newest).step]
        damage = find_damage(best) if rows else None
        if damage is None:
            return newest
        step = BestEvaluation(self.metric, None, rows).step
        say(f"warning: {best} is damaged ({damage}); going back to before step {step} to train it again")
        return newest_checkpoint(self.folder, say, lambda state: state.step < step)

    def rate_scale(self, name: str) -> float:
        decay = self.config.training.layer_decay or 1.0
        return layer_rate_scale(decay, self.model.architecture.layers)(name)

    def read_log(self, rows: list[dict[str, Any]]) -> None:
        self.best = BestEvaluation(self.metric, self.config.training.early_stopping, rows)

    def is_settled(self) -> bool:
        return self.best.is_settled

    def describe(self) -> None:
        training, parameters = self.config.training, list(self.model.parameters())
        total = sum(parameter.numel() for parameter in parameters)
        trained = sum(parameter.numel() for parameter in parameters if parameter.requires_grad)
        say(
            f"run: {total:,} parameters, {trained:,} of them trained; {self.steps:,} steps of "
            f"{training.batch_size} rows, {self.steps_per_epoch:,} an epoch, {training.precision} on "
            f"{training.device}"
        )
        if self.data.dev is None:
            say("no dev data (task.dev or task.dev_fraction): nothing is measured, the last model is kept")

    def micro_batches(self, first_step: int) -> Iterator[list[MicroBatch]]:
        items = self.data.train.items
        for step in range(first_step, self.steps):
            batch = LabeledBatch(tuple(items[i] for i in self.order[step]), self.tokenizer.pad_id)
            yield batch.micro_batches(self.share)

    def evaluator(self) -> Callable[[], Scores] | None:
        return None if self.data.dev is None else self._evaluate

    def reason_to_stop(self, scores: Scores, state: RunState) -> str | None:
        """Save the model if it is the best so far; return the reason to end the run early, or None."""
        if self.best.consider(state.step, scores):
            folder = ranks.on_first(lambda: free_path(self.folder.best))
            self.publish(folder, wrapping.full_weights(self.model))
        if not self.best.is_settled or state.step == self.steps:
            return None
        evaluations = self.config.training.early_stopping
        return f"no better {scores.title(self.metric)} in {evaluations} evaluations (training.early_stopping)"

    def read_weights(self, folder: Path) -> dict[str, Tensor]:
        return load_task_folder(folder, self.data.task.standardization).model.state_dict()

    def save_model(self, folder: Path, weights: Mapping[str, Tensor], card: str | None = None) -> None:
        """Write a model folder. Only the final model has a card; the others keep the scale of training."""
        task, longest = self.data.task, max(item.length for item in self.data.train.items)
        kept = task.standardization if card is None else AS_THEY_ARE
        weights = restandardized(weights, before=task.standardization, after=kept)
        declared = declare_task(
            task.settings if card is None else self.settings,
            task.labels,
            trained_length=length_after(self.source, longest),
            standardization=kept,
        )
        write_model_files(folder, self.model, self.tokenizer, declared=declared, card=card, weights=weights)
        if isinstance(self.model, VectorModel):
            pooling = SentencePooling(self.model.mode, self.model.normalize, task.settings.max_length)
            write_pooling(folder, pooling, self.model.architecture.hidden)

    def finish(self, scores: Scores | None) -> Finetuned:
        """Write the best model, or the last one if there is no dev data, to `model/` with its card."""
        verdict, step, lines = None, self.steps, ["verdict: none, because there was no dev data"]
        if self.data.dev is None:
            weights = wrapping.full_weights(self.model)
        else:
            best = ranks.on_first(lambda: newest_path(self.folder.best))
            weights = self.read_weights(best)
            wrapping.load_full_weights(self.model, weights)
            scores = self.best.scores or self._evaluate()
            verdict = self.data.task.verdict(self.data.dev.examples, scores.metrics)
            chosen = f"best by {scores.title(self.metric)}: step {self.best.step}"
            step, lines = self.best.last_step, [verdict.line, chosen]
            say(chosen)
        self.settings = self.data.task.kept_settings(scores.metrics if scores else {})
        if isinstance(self.settings.null_threshold, float):
            say(f"task.null_threshold: {self.settings.null_threshold:.4g}, kept in the model")
        card = task_card(self.config, self.model.architecture, self.data, scores=scores, verdict=verdict)
        self.publish(self.folder.model, weights, card)
        self.keep_verdict(KeptVerdict(step, lines, verdict.baseline if verdict else {}))
        examples = (self.data.dev or self.data.train).examples
        return Finetuned(self.folder.model, scores, verdict, metric=self.metric, examples=examples)

    def _evaluate(self, at_most: int | None = None) -> Scores:
        """The scores of the dev data, or of its first `at_most` examples."""
        assert self.data.dev is not None
        runner = Runner(
            model=self.model,
            task=self.data.task,
            tokenizer=self.tokenizer,
            device=self.loop.device,
            precision=self.loop.precision,
            batch_size=self.share.micro_batch_size,
            in_training=True,
        )
        return evaluate_task(runner, self.data.dev.first(at_most))[0]
