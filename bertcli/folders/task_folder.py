"""A fine-tuned model with its tokenizer, settings and labels <-> a Hugging Face folder."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from bertcli.config.load import check_config
from bertcli.config.task import PoolingMode, TaskSettings
from bertcli.families.family import Family, HeadKind
from bertcli.families.registry import FAMILIES
from bertcli.folders.config_file import find_family
from bertcli.folders.fill import OUTPUTS, LoadReport, build_from, rename_outputs
from bertcli.folders.lengths import TRAINED
from bertcli.folders.model_files import Declaration, ModelFiles, read_model_files
from bertcli.folders.sentence_transformers import read_pooling
from bertcli.model.architecture import Architecture
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
from bertcli.tasks.facts import output_names
from bertcli.tasks.registry import TASKS
from bertcli.tasks.supervised import task_class
from bertcli.tokenizer.tokenizer import Tokenizer

NOISE = 0.1
"""The rate of dropout with which SimCSE learns best (Gao et al. 2021, table 2)."""
SETTINGS = "bertcli_task"
"""The key of the `TaskSettings`; other libraries ignore it."""
STANDARDIZATION = "bertcli_standardization"
"""The key of mean and scale in the checkpoints of a regression; a finished model has none."""
LONGEST = 512
"""Most tokens in a row for a model whose folder gives no length."""


@dataclass(frozen=True)
class LoadedTask:
    """A fine-tuned model with all that is needed to encode its input and to name its outputs.

    Attributes:
        labels: the labels in the order of the head's outputs; empty if outputs have no names.
        report: what became of each weight.
        folder: the folder that it was read from.
        before: the folder's own labels, if `labels` differ from them, and only some outputs were kept; else
            empty.
    """

    model: TaskModel
    tokenizer: Tokenizer
    settings: TaskSettings
    labels: tuple[str, ...]
    report: LoadReport
    folder: Path
    before: tuple[str, ...] = ()


def task_keys(settings: TaskSettings, labels: Sequence[str]) -> dict[str, Any]:
    """The keys of `config.json` that describe a task, except the class."""
    own = settings.model_dump(mode="json", include=set(TaskSettings.model_fields) - {"bad_bytes"})
    return {SETTINGS: own} | task_class(settings.type).config_keys(settings, labels)


def read_standardization(config: Mapping[str, Any], where: Path) -> Standardization:
    """The standardization of the output. Raises `UserError` if `where`, the file of `config`, is damaged."""
    given = config.get(STANDARDIZATION)
    if given is None:
        return AS_THEY_ARE
    try:
        found = Standardization(float(given["mean"]), float(given["scale"]))
    except (TypeError, KeyError, ValueError, OverflowError):
        found = None
    if found is None or not math.isfinite(found.mean) or not 0 < found.scale < math.inf:
        raise UserError(f"{where}: {STANDARDIZATION} is damaged; expected a mean and a scale over 0")
    return found


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
    task = task_class(settings.type)
    kind, keys = task.head or "encoder", task_keys(settings, labels)
    if standardization != AS_THEY_ARE:  # the output is not the number itself
        keys[STANDARDIZATION] = asdict(standardization)
    if task.in_windows:
        return Declaration(kind, keys, trained_length)
    return Declaration(kind, keys | {TRAINED: trained_length}, settings.max_length)


def task_type(config: Mapping[str, Any], family: Family) -> str | None:
    """The task that a model was fine-tuned for; None if it was not fine-tuned."""
    classes, own = _classes(config), config.get(SETTINGS)
    tasks = [task_class(type) for type in TASKS]
    tasks = [task for task in tasks if family.classes.get(task.head or "encoder") in classes]
    written = [task.type for task in tasks if isinstance(own, Mapping) and own.get("type") == task.type]
    return next(iter([*written, *(task.type for task in tasks if task.is_in(config))]), None)


def read_task(
    folder: Path, config: Mapping[str, Any], architecture: Architecture
) -> tuple[TaskSettings, tuple[str, ...]]:
    """The settings of a fine-tuned model, and its labels in the order of the outputs.

    Rows of a folder that bertcli did not write are as long as the model reads, at most 512 tokens. Any folder
    of sentence-transformers is a model of vectors.

    Args:
        config: the full `config.json` of the folder.

    Raises:
        UserError: the model is not fine-tuned; its settings or its labels cannot be used.
    """
    family, where = FAMILIES[architecture.family], folder / "config.json"
    type, length = task_type(config, family), min(architecture.usable_positions, LONGEST)
    if type is None and (own := read_pooling(folder)):
        vectors = next(name for name in TASKS if task_class(name).head is None)
        return TaskSettings(type=vectors, max_length=max(16, own.max_length or length)), ()
    if type is None:
        classes = _classes(config)
        masked = any(family.classes.get(kind) in classes for kind in ("pretraining", "masked-lm"))
        other = classes[0] if classes else f"a {family.name} without a head"
        what = "a masked language model" if masked else other
        raise UserError(
            f"{where}: this is {what}, not a fine-tuned model; fine-tune it first: bertcli finetune CONFIG"
        )
    task = task_class(type)
    usual: dict[str, Any] = {"type": type, "max_length": length, "doc_stride": length // 4}
    try:
        values = config[SETTINGS] if SETTINGS in config else usual | task.foreign_settings(config)
    except ValueError as error:
        raise UserError(f"{where}: {error}") from None
    settings = check_config(TaskSettings, values, f"{where}, {SETTINGS}")
    names = output_names(config) if task.names_outputs else ()
    if len(set(names)) < len(names):
        raise UserError(f"{where}: id2label gives two outputs the same name; each label must be unique")
    return settings, names


def load_task_folder(folder: Path, standardization: Standardization = AS_THEY_ARE) -> LoadedTask:
    """Read a fine-tuned model, ours or one of transformers (`Family.classes`), on the CPU in fp32.

    The output of a regression is converted from the folder's standardization to `standardization`.

    Raises:
        UserError: as `folders.model_folder.load_model_folder`; the model is not fine-tuned.
    """
    return task_model(read_model_files(folder), standardization)


def folder_task(folder: Path) -> str | None:
    """The task that a folder's model was fine-tuned for, by its `config.json`; None if it was not."""
    path = folder / "config.json"
    config = read_json(path)
    return task_type(config, find_family(config, str(path)))


def vector_settings(folder: Path) -> TaskSettings | None:
    """The settings of a model of vectors that bertcli fine-tuned; None for any other model."""
    path = folder / "config.json"
    own = read_json(path).get(SETTINGS)
    vectors = [type for type in TASKS if task_class(type).head is None]
    if not isinstance(own, dict) or own.get("type") not in vectors:
        return None
    return check_config(TaskSettings, own, f"{path}, {SETTINGS}")


def refuse_vectors(task: str, folder: Path) -> None:
    """Raise `UserError` for a model of sentence vectors, which answers nothing."""
    if task_class(task).head is None:
        raise UserError(
            f"{folder}: its answers are vectors: give it to bertcli embed, or to bertcli similarity, which "
            "compares texts"
        )


def task_model(files: ModelFiles, standardization: Standardization = AS_THEY_ARE) -> LoadedTask:
    """The model that `load_task_folder` gives, from the content of the folder."""
    settings, labels = read_task(files.where.parent, files.config, files.architecture)
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

    The head is the folder's if the folder was fine-tuned for the same task. Labels that both have keep their
    outputs, by name and to the bit; if there are none, or the task is another one, the head is new. New
    outputs, a new head and a missing pooler are initialized from torch's generator. `pooling` is that of
    `TaskConfig`, `standardization` that of the output. Dropout that is 0 everywhere becomes `NOISE` for plain
    text, whose loss compares two readings of a text.

    Raises:
        UserError: as `folders.model_folder.load_model_folder`.
    """
    files = read_model_files(folder)
    if settings.is_plain_text and not files.architecture.dropout and not files.architecture.attention_dropout:
        files = replace(files, architecture=files.architecture.with_dropout(NOISE))
    head = task_class(settings.type).head
    if head is not None and head not in files.family.heads:
        raise UserError(
            f"task.type: {settings.type}, for which transformers has no {files.family.name} class, so nobody "
            f"could load the result; choose another task, or a model of another family"
        )
    labels = tuple(labels)
    before = _kept_head(files, settings, labels)
    model, report = build_from(
        files,
        lambda: _new_model(files, head, labels if before is None else before, pooling=pooling),
        kind=head,
        may_be_new=("pooler",),
        fresh=OUTPUTS if before is None else (),
    )
    loaded = LoadedTask(model, files.tokenizer, settings, labels=labels, report=report, folder=folder)
    if before is not None and before != labels:
        rename_outputs(model, before, labels)
        return replace(loaded, before=before)
    if "classifier" not in report.new_heads:
        _restandardize(model, files, standardization)
    return loaded


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


def _kept_head(files: ModelFiles, settings: TaskSettings, labels: tuple[str, ...]) -> tuple[str, ...] | None:
    """The labels of the folder's head; None: it is another task's, or has none of `labels`."""
    if task_type(files.config, files.family) != settings.type:
        return None
    theirs, own = read_task(files.where.parent, files.config, files.architecture)
    is_same = theirs.multi_label == settings.multi_label
    return own if is_same and (own == labels or not set(own).isdisjoint(labels)) else None


def _classes(config: Mapping[str, Any]) -> list[Any]:
    classes = config.get("architectures")
    return classes if isinstance(classes, list) else []
