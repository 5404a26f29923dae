"""The fine-tuned teacher of a labeled task."""

from __future__ import annotations

from bertcli.config.finetune import FinetuneConfig
from bertcli.errors import UserError
from bertcli.hf.locate import resolve_model
from bertcli.hf.task_folder import load_task_folder
from bertcli.runs.teacher_fit import check_teacher_reads
from bertcli.tasks.base import Task
from bertcli.tasks.registry import build_task
from bertcli.tasks.sentence_embedding import JointlySupervised, SentenceEmbedding
from bertcli.tasks.soft_targets import SoftTargets
from bertcli.tasks.supervised import LabeledTask, Supervised
from bertcli.text.tokenizer import Tokenizer


def trained_task(config: FinetuneConfig, task: LabeledTask, tokenizer: Tokenizer) -> Task:
    """What the loop trains: the labels, and with `config.distillation` the teacher's answers too.

    Raises:
        UserError: the teacher cannot be read, or it has another task, other labels or another tokenizer.
    """
    if isinstance(task, SentenceEmbedding):
        return JointlySupervised(task)
    if config.distillation is None:
        return Supervised(task)
    folder = resolve_model(config.distillation.teacher)
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
    return SoftTargets(
        task, teacher.model, config.distillation.temperature, weights=config.distillation.weights
    )


def _described(task: LabeledTask) -> str:
    """What a teacher and its student have in common."""
    return f"{task.settings.type}, answers: {task.answer_kind}, labels: {', '.join(task.labels) or 'none'}"
