"""A fine-tuning run: a model folder and labeled files -> a task model."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from torch import Tensor

from bertcli.batches.order import EpochOrder
from bertcli.batches.share import MicroBatch, Share
from bertcli.config.finetune import FinetuneConfig
from bertcli.config.run import DecidedFinetuning, with_values
from bertcli.config.task import TaskSettings
from bertcli.folders.lengths import LongRows, check_length, length_after
from bertcli.folders.locate import resolve_model
from bertcli.folders.model_files import write_model_files
from bertcli.folders.run_layout import KeptVerdict
from bertcli.folders.sentence_transformers import SentencePooling, write_pooling
from bertcli.folders.task_folder import declare_task, load_task_folder
from bertcli.inference.evaluate_task import evaluate_task
from bertcli.inference.predict import Runner
from bertcli.model.task_models import AS_THEY_ARE, Standardization, TaskModel, VectorModel, restandardized
from bertcli.objectives.base import Task
from bertcli.reports.cards import task_card
from bertcli.system.terminal import say
from bertcli.tasks.data import LabeledData, Split, load_labeled_data
from bertcli.tasks.examples import Example
from bertcli.tasks.supervised import LabeledBatch
from bertcli.tasks.verdict import Verdict
from bertcli.tokenizer.tokenizer import Tokenizer
from bertcli.training import ranks, wrapping
from bertcli.training.best import BestModel, metric_value, metric_values
from bertcli.training.closing import resume_command
from bertcli.training.evaluate import Scores
from bertcli.training.identity import check_same_data, finetuning_inputs, task_identity
from bertcli.training.lifecycle import Prepared, Run, claimed, take_steps
from bertcli.training.loop import LoopSettings
from bertcli.training.optimizer import layer_rate_scale
from bertcli.training.resolve import check_finetuning, decide_finetuning, loop_settings, own_share
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
    """Fine-tune with one seed (`training.train`: several), on every rank; raises as `claimed`.

    `accepted` is called on the first rank after config, data and model have passed all checks.
    """
    source = ranks.first_then_all(lambda: resolve_model(config.model))
    config = with_values(config, {"model": str(source)})
    ranks.on_first(lambda: check_finetuning(config))
    root = Path(config.output_dir)
    command = resume_command("finetune", root.parent if config.seeds else root)
    run = Run("finetune", config, resume=resume, resume_command=command)
    with claimed(run, lambda: finetuning_inputs(config), overwrite):
        parts = _build(run.asked, source)
        identity = ranks.on_first(lambda: task_identity(parts.config, parts.data.task.labels))
        run.compare(parts.config, identity, lambda old: check_same_data(old, identity, run.folder.data))
        _check_metric(parts)
        run.accept(parts.config, identity)
        ranks.on_first(accepted)
        prepared = _prepare(run, parts)
        scores = take_steps(run, prepared)
        return _finish(run, parts, prepared, scores=scores)


@dataclass(frozen=True)
class Parts:
    """The data, the model and all decisions of a fine-tuning.

    Attributes:
        source: the model folder that the run starts from.
        task: the labeled task as it is trained, with a teacher if there is one.
        order: step -> the numbers of its examples.
    """

    config: DecidedFinetuning
    source: Path
    tokenizer: Tokenizer
    data: LabeledData
    model: TaskModel
    task: Task
    loop: LoopSettings
    order: EpochOrder
    share: Share
    steps: int

    @property
    def metric(self) -> str:
        """The metric that selects the best model."""
        return self.config.task.metric or self.data.task.metric


def _build(asked: FinetuneConfig, source: Path) -> Parts:
    """Read the data, build the model, and decide every `auto`; called on every rank."""
    check_length(source, asked.task.max_length, "task.max_length")
    tokenizer = Tokenizer.load(source)
    data = ranks.first_then_all(lambda: load_labeled_data(asked, tokenizer, say))
    long_rows = LongRows(source)
    for split in filter(None, (data.train, data.dev)):
        long_rows.count(item.length for item in split.items)
    long_rows.tell()
    model = new_task_model(
        asked, source, data.task.labels, say=say, standardization=data.task.standardization
    )
    config = ranks.on_first(lambda: decide_finetuning(asked, model.architecture, data))
    training, seed = config.training, config.training_seed
    order = EpochOrder(len(data.train.items), training.batch_size, seed)
    steps = max(1, round(training.epochs * order.steps_per_epoch))
    loop = loop_settings(training, seed, steps, warmup_steps=round(training.warmup_ratio * steps))
    task = trained_task(config, data.task, tokenizer)
    model.to(loop.device)
    return Parts(
        config=config,
        source=source,
        tokenizer=tokenizer,
        data=data,
        model=model,
        task=task,
        loop=loop,
        order=order,
        share=own_share(training, data.joint_rows(training.batch_size)),
        steps=steps,
    )


def _check_metric(parts: Parts) -> None:
    """Raise `UserError` if the dev data cannot be evaluated by the metric, before anything is written."""
    dev = parts.data.dev
    if dev is not None and parts.metric not in metric_values(_evaluate(parts, dev.first(SANITY_EXAMPLES))):
        # Some metrics need kinds of examples that the first few may lack.
        metric_value(_evaluate(parts, dev), parts.metric)


def _prepare(run: Run[FinetuneConfig], parts: Parts) -> Prepared:
    training, dev = parts.config.training, parts.data.dev
    best = BestModel(run.folder, parts.metric, training.early_stopping)
    return Prepared(
        config=parts.config,
        model=parts.model,
        task=parts.task,
        loop=parts.loop,
        steps=parts.steps,
        micro_batches=partial(_micro_batches, parts),
        save_model=partial(_save_as_trained, parts),
        read_weights=partial(_read_weights, parts),
        evaluate=None if dev is None else partial(_evaluate, parts, dev),
        best=None if dev is None else best,
        lines=list(_lines(parts)),
        rate_scale=layer_rate_scale(training.layer_decay or 1.0, parts.model.architecture.layers),
        steps_per_epoch=parts.order.steps_per_epoch,
    )


def _lines(parts: Parts) -> Iterator[str]:
    parameters, training = list(parts.model.parameters()), parts.config.training
    total = sum(parameter.numel() for parameter in parameters)
    trained = sum(parameter.numel() for parameter in parameters if parameter.requires_grad)
    yield (
        f"run: {total:,} parameters, {trained:,} of them trained; {parts.steps:,} steps of "
        f"{training.batch_size} rows, {parts.order.steps_per_epoch:,} an epoch, {training.precision} on "
        f"{training.device}"
    )
    if parts.data.dev is None:
        yield "no dev data (task.dev or task.dev_fraction): nothing is measured, the last model is kept"


def _micro_batches(parts: Parts, first_step: int) -> Iterator[list[MicroBatch]]:
    items = parts.data.train.items
    for step in range(first_step, parts.steps):
        batch = LabeledBatch(tuple(items[i] for i in parts.order[step]), parts.tokenizer.pad_id)
        yield batch.micro_batches(parts.share)


def _evaluate(parts: Parts, dev: Split) -> Scores:
    runner = Runner(
        model=parts.model,
        task=parts.data.task,
        tokenizer=parts.tokenizer,
        device=parts.loop.device,
        precision=parts.loop.precision,
        batch_size=parts.share.micro_batch_size,
        in_training=True,
    )
    return evaluate_task(runner, dev)[0]


def _read_weights(parts: Parts, folder: Path) -> dict[str, Tensor]:
    return load_task_folder(folder, parts.data.task.standardization).model.state_dict()


def _save_as_trained(parts: Parts, folder: Path, weights: Mapping[str, Tensor]) -> None:
    """Write the model folder of a checkpoint, which keeps the scale of training."""
    task = parts.data.task
    _save(parts, folder, weights, settings=task.settings, standardization=task.standardization)


def _save_final(
    parts: Parts, settings: TaskSettings, card: str, folder: Path, weights: Mapping[str, Tensor]
) -> None:
    """Write the final model folder, whose answers have the scale of the data."""
    before = parts.data.task.standardization
    weights = restandardized(weights, before=before, after=AS_THEY_ARE)
    _save(parts, folder, weights, settings=settings, standardization=AS_THEY_ARE, card=card)


def _save(
    parts: Parts,
    folder: Path,
    weights: Mapping[str, Tensor],
    settings: TaskSettings,
    standardization: Standardization,
    card: str | None = None,
) -> None:
    longest = max(item.length for item in parts.data.train.items)
    declared = declare_task(
        settings,
        parts.data.task.labels,
        trained_length=length_after(parts.source, longest),
        standardization=standardization,
    )
    model = parts.model
    write_model_files(folder, model, parts.tokenizer, declared=declared, card=card, weights=weights)
    if isinstance(model, VectorModel):
        pooling = SentencePooling(model.mode, model.normalize, settings.max_length)
        write_pooling(folder, pooling, model.architecture.hidden)


def _finish(run: Run[FinetuneConfig], parts: Parts, prepared: Prepared, scores: Scores | None) -> Finetuned:
    """Write the best model, or the last one if there is no dev data, to `model/` with its card."""
    data, verdict, step = parts.data, None, parts.steps
    lines = ["verdict: none, because there was no dev data"]
    if prepared.best is None or prepared.evaluate is None or data.dev is None:
        weights = wrapping.full_weights(parts.model)
    else:
        weights = _read_weights(parts, prepared.best.path())
        wrapping.load_full_weights(parts.model, weights)
        best = prepared.best.evaluation
        scores = best.scores or prepared.evaluate()
        verdict = data.task.verdict(data.dev.examples, scores.metrics)
        chosen = f"best by {scores.title(parts.metric)}: step {best.step}"
        step, lines = best.last_step, [verdict.line, chosen]
        say(chosen)
    settings = data.task.kept_settings(scores.metrics if scores else {})
    if isinstance(settings.null_threshold, float):
        say(f"task.null_threshold: {settings.null_threshold:.4g}, kept in the model")
    card = task_card(parts.config, parts.model.architecture, data, scores=scores, verdict=verdict)
    run.publish(run.folder.model, partial(_save_final, parts, settings, card), weights)
    run.keep_verdict(KeptVerdict(step, lines, verdict.baseline if verdict else {}))
    examples = (data.dev or data.train).examples
    return Finetuned(run.folder.model, scores, verdict, metric=parts.metric, examples=examples)
