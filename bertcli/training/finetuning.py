"""A fine-tuning run: a model folder and labeled files -> a task model."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

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
from bertcli.folders.sentence_transformers import SentencePooling, write_pooling
from bertcli.folders.task_folder import declare_task, load_task_folder
from bertcli.inference.evaluate_task import Evaluated, evaluate_task
from bertcli.inference.predict import Runner
from bertcli.model.task_models import AS_THEY_ARE, Standardization, TaskModel, VectorModel, restandardized
from bertcli.reports.cards import task_card
from bertcli.system.terminal import say
from bertcli.tasks.data import LabeledData, load_labeled_data
from bertcli.tasks.examples import Example
from bertcli.tasks.supervised import LabeledBatch
from bertcli.tasks.verdict import Verdict
from bertcli.tokenizer.tokenizer import Tokenizer
from bertcli.training import ranks, wrapping
from bertcli.training.best import BestModel, IsHopeless, metric_value, metric_values
from bertcli.training.fit import take_steps
from bertcli.training.identity import check_same_data, finetuning_inputs, task_identity
from bertcli.training.lifecycle import Prepared, Run
from bertcli.training.optimizer import layer_rate_scale
from bertcli.training.resolve import (
    check_finetuning,
    decide_finetuning,
    finetuning_recipe,
    loop_settings,
    own_share,
)
from bertcli.training.scores import Scores
from bertcli.training.task_models import new_task_model, trained_task

SANITY_EXAMPLES = 8
"""Number of examples evaluated before the first step, to find a mistake in metric or dev file early."""


@dataclass(frozen=True)
class Finetuned:
    """A finished run.

    Attributes:
        model: the folder of the final model.
        scores, verdict: results on the dev data, or of the out-of-fold answers; None: neither.
        metric: the metric that selected the model.
        examples: the dev data; if there is none, the training data.
        best_epoch: the epochs after which that model was the best; all of them without dev data.
        answers: of a fold, its examples with the answers of the model, which hold its logits.
        places: of a fold, the places of its examples in the file.
    """

    model: Path
    scores: Scores | None
    verdict: Verdict | None
    metric: str
    examples: Sequence[Example]
    best_epoch: float
    answers: Evaluated | None = None
    places: Sequence[int] = ()


def finetune(
    config: FinetuneConfig,
    resume: bool,
    overwrite: bool,
    accepted: Callable[[], None] = lambda: None,
    given: Path | None = None,
    out_of_fold: Evaluated | None = None,
    is_hopeless: IsHopeless = lambda planned, steps, scores: False,
) -> Finetuned:
    """Make one run (`training.train`: those of seeds and folds), on every rank; raises as `Run.claimed`.

    Args:
        accepted: called on the first rank after config, data and model have passed all checks.
        given: the folder that the command names; None: that of the config.
        out_of_fold: the answers to the rows by models that did not learn from them, for the model that does.
        is_hopeless: called on every rank after each evaluation but the last.
    """
    source = ranks.first_then_all(lambda: resolve_model(config.model))
    config = with_values(config, {"model": str(source)})
    ranks.on_first(lambda: check_finetuning(config))
    run = Run("finetune", config, resume, given=given or Path(config.output_dir))
    with run.claimed(lambda: finetuning_inputs(config), overwrite):
        prepared = replace(_prepare(run, source, is_hopeless), out_of_fold=out_of_fold)
        identity = ranks.on_first(lambda: task_identity(prepared.config, prepared.data.task.labels))
        run.compare(prepared.config, identity, check_same_data)
        prepared.check_metric()
        run.accept(prepared.config, identity)
        ranks.on_first(accepted)
        take_steps(run, prepared)
        return _finish(run, prepared)


@dataclass(frozen=True, kw_only=True)
class Finetuning(Prepared):
    """The data, the model and all decisions of a fine-tuning.

    Attributes:
        source: the model folder that the run starts from.
        task: the labeled task as it is trained, with its teacher if it has one; `data.task` has none.
        metric: the metric that selects the best model.
    """

    config: DecidedFinetuning
    source: Path
    tokenizer: Tokenizer
    data: LabeledData
    model: TaskModel
    order: EpochOrder
    metric: str
    out_of_fold: Evaluated | None = None

    @property
    def is_evaluated(self) -> bool:
        """Whether there is dev data."""
        return self.data.dev is not None

    def check_metric(self) -> None:
        """Raise `UserError` before anything is written if the dev data cannot be evaluated by the metric."""
        if self.is_evaluated and self.metric not in metric_values(self.evaluate(SANITY_EXAMPLES)):
            # Some metrics need kinds of examples that the first few may lack.
            metric_value(self.evaluate(), self.metric)

    def lines(self) -> Iterator[str]:
        """Lines that say what is trained, and how."""
        training = self.config.training
        sizes = [(each.numel(), each.requires_grad) for each in self.model.parameters()]
        total, trained = sum(size for size, _ in sizes), sum(size for size, learns in sizes if learns)
        yield (
            f"run: {total:,} parameters, {trained:,} of them trained; {self.steps:,} steps of "
            f"{training.batch_size} rows, {self.steps_per_epoch:,} an epoch, {training.precision} on "
            f"{training.device}"
        )
        if not self.is_evaluated and self.out_of_fold is None:
            yield "no dev data (task.dev or task.dev_fraction): nothing is measured, the last model is kept"

    def micro_batches(self, first_step: int) -> Iterator[list[MicroBatch]]:
        """This rank's share of each step, from the step of that number on."""
        for step in range(first_step, self.steps):
            rows = tuple(self.data.train.items[i] for i in self.order[step])
            batch = LabeledBatch(rows, self.tokenizer.pad_id, progress=step / self.steps)
            yield batch.micro_batches(self.share)

    def evaluate(self, first: int | None = None) -> Scores:
        """The scores of the model on the dev data, or on its first examples."""
        return self.answers(first).scores

    def answers(self, first: int | None = None) -> Evaluated:
        """The answers of the model to the dev data, or to its first examples, and their scores."""
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
        dev = self.data.dev.first(first)
        scores, predictions = evaluate_task(runner, dev)
        return Evaluated(self.data.task, dev.examples, predictions, scores=scores)

    def read_weights(self, folder: Path) -> dict[str, Tensor]:
        """The weights in a model folder: name in the model -> weight."""
        return load_task_folder(folder, self.data.task.standardization).model.state_dict()

    def save(self, folder: Path, weights: Mapping[str, Tensor]) -> None:
        """Write the model folder of a checkpoint, whose answers keep the scale of training."""
        task = self.data.task
        self._write(folder, weights, task.settings, standardization=task.standardization)

    def save_final(
        self, folder: Path, weights: Mapping[str, Tensor], settings: TaskSettings, card: str
    ) -> None:
        """Write the final model folder, with these settings; its answers have the scale of the data."""
        before, divisor = self.data.task.standardization, settings.temperature
        if isinstance(divisor, float):
            before = Standardization(scale=1 / divisor)
        weights = restandardized(weights, before=before, after=AS_THEY_ARE)
        self._write(folder, weights, settings, standardization=AS_THEY_ARE, card=card)

    def _write(
        self,
        folder: Path,
        weights: Mapping[str, Tensor],
        settings: TaskSettings,
        standardization: Standardization,
        card: str | None = None,
    ) -> None:
        model = self.model
        longest = max(item.length for item in self.data.train.items)
        declared = declare_task(
            settings,
            self.data.task.labels,
            trained_length=length_after(self.source, longest),
            standardization=standardization,
        )
        write_model_files(folder, model, self.tokenizer, declared=declared, card=card, weights=weights)
        if isinstance(model, VectorModel):
            pooling = SentencePooling(model.mode, model.normalize, settings.max_length)
            write_pooling(folder, pooling, model.architecture.hidden)

    def rate_scale(self, name: str) -> float:
        """The factor of the learning rate of the parameter with this name."""
        decay, layers = self.config.training.layer_decay or 1.0, self.model.architecture.layers
        of_head = self.data.task.head_rate if name.startswith("classifier.") else 1.0
        return of_head * layer_rate_scale(name, decay, layers)


def _prepare(run: Run[FinetuneConfig], source: Path, is_hopeless: IsHopeless) -> Finetuning:
    """Read the data, build the model, and decide every `auto`; called on every rank."""
    asked = run.asked
    check_length(source, asked.task.max_length, "task.max_length")
    tokenizer = Tokenizer.load(source)
    data = ranks.first_then_all(lambda: load_labeled_data(asked, tokenizer, say))
    long_rows = LongRows(source)
    long_rows.count(item.length for split in filter(None, (data.train, data.dev)) for item in split.items)
    long_rows.tell()
    model = new_task_model(asked, source, data.task, say=say)
    config = ranks.on_first(
        lambda: decide_finetuning(finetuning_recipe(asked, model), model.architecture, data)
    )
    training, seed = config.training, config.training_seed
    order = data.order(training.batch_size, seed)
    steps = max(1, round(training.epochs * order.steps_per_epoch))
    loop = loop_settings(training, seed, steps, warmup_steps=round(training.warmup_ratio * steps))
    task = trained_task(config, data.task, tokenizer)
    metric = config.task.metric or data.task.metric
    patience, rule = training.early_stopping, partial(is_hopeless, steps)
    best = BestModel(run.folder, metric, patience, is_hopeless=rule) if data.dev else None
    model.to(loop.device)
    return Finetuning(
        config=config,
        source=source,
        tokenizer=tokenizer,
        data=data,
        model=model,
        task=task,
        loop=loop,
        order=order,
        metric=metric,
        share=own_share(training, data.rows(training.batch_size).joint),
        steps=steps,
        best=best,
        steps_per_epoch=order.steps_per_epoch,
    )


def _finish(run: Run[FinetuneConfig], prepared: Finetuning) -> Finetuned:
    """Write the best model, or the last one if there is no dev data, to `model/` with its card.

    What the model takes from dev data, the run on all rows takes from the out-of-fold answers.
    """
    data, metric, best, config = prepared.data, prepared.metric, prepared.best, prepared.config
    answers, examples = prepared.out_of_fold, data.train.examples
    scores, chosen = answers.scores if answers else None, "measured on out-of-fold answers"
    step = best_step = prepared.steps
    if best is None or data.dev is None:
        weights = wrapping.full_weights(prepared.model)
    else:
        weights = prepared.read_weights(best.path())
        wrapping.load_full_weights(prepared.model, weights)
        answers, examples = prepared.answers() if config.fold else None, data.dev.examples
        scores = answers.scores if answers else best.scores or prepared.evaluate()
        step, best_step = best.last_step, best.step
        chosen = f"best by {scores.title(metric)}: step {best_step}"
        say(chosen)
    verdict = data.task.verdict(examples, scores.metrics) if scores else None
    lines = [verdict.line, chosen] if verdict else ["verdict: none, because there was no dev data"]
    settings = data.task.kept_settings(scores.metrics if scores else {})
    for line in data.task.kept_lines(settings):
        say(line)
    folds = len(set(answers.folds)) if answers else 0
    card = task_card(config, prepared.model.architecture, data, scores=scores, verdict=verdict, folds=folds)
    run.publish(run.folder.model, partial(prepared.save_final, settings=settings, card=card), weights)
    run.keep_verdict(KeptVerdict(step, lines, verdict.baseline if verdict else {}))
    return Finetuned(
        run.folder.model,
        scores,
        verdict,
        metric=metric,
        examples=examples,
        best_epoch=best_step / (prepared.steps_per_epoch or 1),
        answers=answers,
        places=data.dev.places if data.dev else (),
    )
