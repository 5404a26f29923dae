"""The model to fine-tune, from a model folder, and the fine-tuned teacher that it may learn from."""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from bertcli.batches.order import make_key
from bertcli.config.finetune import FinetuneConfig
from bertcli.config.task import TaskConfig
from bertcli.folders.config_file import read_architecture
from bertcli.folders.init_from import check_teacher_reads
from bertcli.folders.locate import resolve_model
from bertcli.folders.task_folder import load_for_finetuning, load_task_folder
from bertcli.model.task_models import (
    SequenceModel,
    TaskModel,
    choose_pooling,
    keep_layers,
    may_choose_pooling,
)
from bertcli.objectives.base import Task, Term
from bertcli.objectives.masked_language import soft_divergence
from bertcli.system.errors import UserError
from bertcli.system.terminal import Report
from bertcli.tasks.labels import kept_outputs
from bertcli.tasks.supervised import LabeledBatch, LabeledTask, build_task
from bertcli.tokenizer.tokenizer import Tokenizer
from bertcli.training.optimizer import freeze


def new_task_model(config: FinetuneConfig, source: Path, task: LabeledTask, say: Report) -> TaskModel:
    """The model to fine-tune from `source` for a task; new weights are initialized from the seed.

    The names of new and unused weights are given to `say`.

    Raises:
        UserError: `source` cannot be read, has fewer layers than should be kept or frozen, or a head that
            cannot read the mean of the tokens.
    """
    torch.manual_seed(int(make_key(config.training_seed, "init")))
    loaded = load_for_finetuning(
        source,
        task.settings,
        task.labels,
        pooling=config.task.pooling,
        standardization=task.standardization,
    )
    model, report, frozen = loaded.model, loaded.report, config.training.freeze_layers
    say(f"model: {source}, {len(report.loaded)} tensors loaded")
    if loaded.before:
        say(f"  {kept_outputs(loaded.before, task.labels)}")
    if report.new:
        say(f"  new: {', '.join(report.new)}")
    if report.left_aside:
        say(f"  left aside: {', '.join(report.left_aside)}")
    if model.architecture.dropout > read_architecture(source / "config.json").dropout:
        rate = model.architecture.dropout
        say(f"  dropout: {rate:g} instead of 0, with which the two readings of a text would be equal")
    if config.training.keep_layers is not None:
        keep_layers(model, config.training.keep_layers)
    layers = model.architecture.layers
    if isinstance(model, SequenceModel):
        _choose_pooling(model, config.task, is_new="classifier" in report.new_heads, source=source)
    if model.architecture.layers > layers:
        say("  one more layer, by which the head reads the mean of the tokens")
    if model.architecture.layer_groups is not None and (frozen or config.training.layer_decay):
        raise UserError(
            "training.freeze_layers and training.layer_decay need layers with weights of their own, but the "
            "layers of this model share theirs; leave both out"
        )
    if frozen > model.architecture.layers:
        raise UserError(
            f"training.freeze_layers: {frozen}, but the model has only {model.architecture.layers} layers"
        )
    freeze(model, frozen)
    model.body.encoder.activation_checkpointing = config.training.activation_checkpointing
    return model


def _choose_pooling(model: SequenceModel, task: TaskConfig, is_new: bool, source: Path) -> None:
    """Obey the key `task.pooling`; few rows are learned from the mean where that is possible."""
    own = model.architecture.pooling
    pooling: Any = task.pooling or ("mean" if task.few_shot else own)
    if is_new and may_choose_pooling(model):
        choose_pooling(model, pooling)
    elif task.pooling and pooling != own:
        raise UserError(
            f"task.pooling: {pooling} is for a new head on a BERT, a RoBERTa or a ModernBERT, and {source} "
            "has a trained head or another architecture; leave it out"
        )


@dataclass(frozen=True)
class SoftTargets:
    """The task of distillation in the training loop: the terms `teacher` and `labels`, with these weights."""

    task: LabeledTask
    teacher: nn.Module
    temperature: float
    weights: tuple[float, float]

    def counts(self, batch: LabeledBatch) -> dict[str, float]:
        return dict.fromkeys(("teacher", "labels"), self.task.count(batch))

    def terms(self, model: nn.Module, batch: LabeledBatch) -> dict[str, Term]:
        logits = model(*batch.rows)
        with torch.no_grad():
            taught = self.teacher.to(logits.device)(*batch.rows)
        loss = soft_loss(
            self.task.answers(logits, batch),
            self.task.answers(taught, batch),
            kind=self.task.answer_kind,
            temperature=self.temperature,
        )
        of_teacher, of_labels = self.weights
        own = self.task.term(logits, batch)
        return {
            "teacher": Term(loss, correct=None, weight=of_teacher, unit=own.unit),
            "labels": replace(own, weight=of_labels),
        }


def soft_loss(
    answers: Tensor, taught: Tensor, kind: Literal["softmax", "sigmoid", "value"], temperature: float
) -> Tensor:
    """The sum over answers of T^2 KL(teacher || student) at temperature T, or of the squared difference.

    `answers` and `taught`: float32 [N, C] or [N, parts, C]; the loss is the mean over the parts.
    """
    if kind == "value":
        return F.mse_loss(answers, taught, reduction="sum")
    own, theirs = answers / temperature, taught / temperature
    if kind == "sigmoid":
        wanted = theirs.sigmoid()
        entropy = F.binary_cross_entropy_with_logits(theirs, wanted, reduction="sum")
        return (F.binary_cross_entropy_with_logits(own, wanted, reduction="sum") - entropy) * temperature**2
    parts = answers.shape[1] if answers.ndim == 3 else 1
    return soft_divergence(answers, taught, temperature) / parts


def trained_task(config: FinetuneConfig, task: LabeledTask, tokenizer: Tokenizer) -> Task:
    """The task that the loop trains: the labels, and with `config.distillation` also the teacher's answers.

    Raises:
        UserError: the teacher cannot be read, or it has another task, other labels or another tokenizer.
    """
    distillation = config.distillation
    if distillation is None:
        return task
    folder = resolve_model(distillation.teacher)
    teacher = load_task_folder(folder, task.standardization)
    own, theirs = _described(task), _described(build_task(teacher.settings, teacher.labels))
    if own != theirs:
        raise UserError(
            f"distillation.teacher: {folder} has another task ({theirs}) than this run ({own}); fine-tune "
            "the teacher on the same files, with the same section task"
        )
    if teacher.tokenizer.hash != tokenizer.hash:
        raise UserError(
            f"distillation.teacher: {folder} has another tokenizer than {config.model}; give a student "
            "with the teacher's, for example the teacher's own folder with training.keep_layers"
        )
    check_teacher_reads(teacher.model.architecture, config.task.max_length, "task.max_length")
    teacher.model.eval().requires_grad_(False)
    return SoftTargets(task, teacher.model, distillation.temperature, weights=distillation.weights)


def _described(task: LabeledTask) -> str:
    """The properties that a teacher and its student must have in common, as text."""
    return f"{task.settings.type}, answers: {task.answer_kind}, labels: {', '.join(task.labels) or 'none'}"
