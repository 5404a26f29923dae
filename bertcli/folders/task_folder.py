"""A fine-tuned model with its tokenizer, settings and labels <-> a Hugging Face folder."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from bertcli.config.task import PoolingMode, TaskSettings, TaskType
from bertcli.families.family import HeadKind
from bertcli.folders.config_file import find_family
from bertcli.folders.fill import LoadReport, build_from
from bertcli.folders.lengths import TRAINED
from bertcli.folders.model_files import Declaration, ModelFiles, read_model_files
from bertcli.folders.sentence_transformers import read_pooling
from bertcli.folders.task_config import (
    LONGEST,
    read_standardization,
    read_task,
    standardization_keys,
    task_keys,
    task_type,
)
from bertcli.model.task_models import (
    AS_THEY_ARE,
    Standardization,
    TaskModel,
    VectorModel,
    build_task_model,
    restandardized,
)
from bertcli.system.errors import UserError
from bertcli.system.formats import read_json
from bertcli.tasks.supervised import task_class
from bertcli.tokenizer.tokenizer import Tokenizer

NOISE = 0.1
"""The rate of dropout with which SimCSE learns best (Gao et al. 2021, table 2)."""
_HEADS = ("classifier", "qa_outputs")


@dataclass(frozen=True)
class LoadedTask:
    """A fine-tuned model with all that is needed to encode its input and to name its outputs.

    Attributes:
        labels: the labels in the order of the head's outputs; empty if outputs have no names.
        report: what became of each weight.
        folder: the folder that it was read from.
    """

    model: TaskModel
    tokenizer: Tokenizer
    settings: TaskSettings
    labels: tuple[str, ...]
    report: LoadReport
    folder: Path


def declare_task(
    settings: TaskSettings,
    labels: Sequence[str],
    trained_length: int | None = None,
    standardization: Standardization = AS_THEY_ARE,
) -> Declaration:
    """The declaration of a fine-tuned model, for `folders.model_files.write_model_files`.

    `settings` may be a full `TaskConfig`: the keys of training alone are not written. Other libraries cut
    rows at the length that the tokenizer declares. It is `max_length`, so that they read what bertcli reads;
    it is `trained_length` for tasks that read longer texts in windows.
    """
    kind = task_class(settings.type).head or "encoder"
    keys = task_keys(settings, labels) | standardization_keys(standardization)
    if settings.type in ("token-classification", "question-answering"):
        return Declaration(kind, keys, trained_length)
    return Declaration(kind, keys | {TRAINED: trained_length}, settings.max_length)


def load_task_folder(folder: Path, standardization: Standardization = AS_THEY_ARE) -> LoadedTask:
    """Read a fine-tuned model, ours or one of transformers (`Family.classes`), on the CPU in fp32.

    The output of a regression is converted from the folder's standardization to `standardization`.

    Any folder of sentence-transformers is a model for sentence-embedding. `folders.task_config.read_task`
    says how the input of transformers' models is read.

    Raises:
        UserError: as `folders.model_folder.load_model_folder`; the model is not fine-tuned.
    """
    return task_model(read_model_files(folder), standardization)


def folder_task(folder: Path) -> TaskType | None:
    """The task that a folder's model was fine-tuned for, by its `config.json`; None if it was not."""
    path = folder / "config.json"
    config = read_json(path)
    return task_type(config, find_family(config, str(path)))


def refuse_vectors(task: TaskType, folder: Path) -> None:
    """Raise `UserError` for a model of sentence vectors, which answers nothing."""
    if task == "sentence-embedding":
        raise UserError(
            f"{folder}: its answers are vectors: give it to bertcli embed, or to bertcli similarity, which "
            "compares texts"
        )


def task_model(files: ModelFiles, standardization: Standardization = AS_THEY_ARE) -> LoadedTask:
    """The model that `load_task_folder` gives, from the content of the folder."""
    settings, labels = _read_task(files)
    head = task_class(settings.type).head
    model, report = build_from(files, lambda: _new_model(files, head, labels), head)
    _restandardize(model, files, standardization)
    return LoadedTask(
        model, files.tokenizer, settings, labels=labels, report=report, folder=files.where.parent
    )


def load_for_finetuning(
    folder: Path,
    settings: TaskSettings,
    labels: Sequence[str],
    pooling: PoolingMode | None = None,
    standardization: Standardization = AS_THEY_ARE,
) -> LoadedTask:
    """A model to train on a task, from any model folder: its body, its pooler if it has one, and a head.

    The head is the folder's if the folder was fine-tuned for the same task with the same labels in the same
    order. Any other head and a missing pooler are new: initialized from torch's generator, and named in the
    report. `pooling` is that of `TaskConfig`, `standardization` that of the output. Dropout that is 0
    everywhere becomes `NOISE` for plain text, whose loss compares two readings of a text.

    Raises:
        UserError: as `folders.model_folder.load_model_folder`.
    """
    files = read_model_files(folder)
    if settings.is_plain_text and not files.architecture.dropout and not files.architecture.attention_dropout:
        noisy = replace(files.architecture, dropout=NOISE, attention_dropout=NOISE)
        files = replace(files, architecture=noisy)
    head = task_class(settings.type).head
    if head is not None and head not in files.family.heads:
        raise UserError(
            f"task.type: {settings.type}, for which transformers has no {files.family.name} class, so nobody "
            f"could load the result; choose another task, or a model of another family"
        )
    model, report = build_from(
        files,
        lambda: _new_model(files, head, labels, pooling=pooling),
        kind=head,
        may_be_new=("pooler",),
        fresh=() if _has_head_for(files, settings, tuple(labels)) else _HEADS,
    )
    if "classifier" not in report.new_heads:
        _restandardize(model, files, standardization)
    return LoadedTask(model, files.tokenizer, settings, labels=tuple(labels), report=report, folder=folder)


def _restandardize(model: TaskModel, files: ModelFiles, after: Standardization) -> None:
    before = read_standardization(files.config, where=files.where.with_name("config.json"))
    if before != after:
        model.load_state_dict(restandardized(model.state_dict(), before, after))


def _new_model(
    files: ModelFiles, head: HeadKind | None, labels: Sequence[str], pooling: PoolingMode | None = None
) -> TaskModel:
    if head is not None:
        return build_task_model(head, files.architecture, len(labels) or 1)
    own = read_pooling(files.where.parent)
    if own is None:
        return VectorModel(files.architecture, pooling or "mean")
    return VectorModel(files.architecture, pooling or own.mode, own.normalize)


def _has_head_for(files: ModelFiles, settings: TaskSettings, labels: tuple[str, ...]) -> bool:
    if task_type(files.config, files.family) != settings.type:
        return False
    theirs, their_labels = _read_task(files)
    return their_labels == labels and theirs.multi_label == settings.multi_label


def _read_task(files: ModelFiles) -> tuple[TaskSettings, tuple[str, ...]]:
    config = files.where.with_name("config.json")
    if task_type(files.config, files.family) is None and (own := read_pooling(files.where.parent)):
        length = own.max_length or min(files.architecture.usable_positions, LONGEST)
        return TaskSettings(type="sentence-embedding", max_length=max(16, length)), ()
    return read_task(files.config, files.family, files.architecture.usable_positions, where=config)
