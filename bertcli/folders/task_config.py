"""A task's settings and labels <-> the keys of `config.json`, also those for `CrossEncoder`."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from bertcli.config.load import check_config
from bertcli.config.task import TaskSettings, TaskType
from bertcli.families.family import Family
from bertcli.model.task_models import AS_THEY_ARE, Standardization
from bertcli.system.errors import UserError
from bertcli.tasks.registry import TASKS
from bertcli.tasks.supervised import task_class


def is_cross_encoder(settings: TaskSettings, labels: Sequence[str]) -> bool:
    """True if a model gives one number for a pair: that of a regression, or of one label (`multi_label`)."""
    one_output = settings.type == "regression" or (settings.multi_label and len(labels) == 1)
    return one_output and len(settings.text_columns) == 2


def cross_encoder_keys(settings: TaskSettings) -> dict[str, Any]:
    """The keys of `config.json` by which `CrossEncoder.predict`, release 4 or later, gives our numbers.

    It takes the sigmoid of every single output without them.
    """
    is_probability = settings.sigmoid or settings.multi_label
    activation = "activation.Sigmoid" if is_probability else "linear.Identity"
    return {"sentence_transformers": {"activation_fn": f"torch.nn.modules.{activation}"}}


SETTINGS = "bertcli_task"
"""The key of the `TaskSettings`; other libraries ignore it."""
STANDARDIZATION = "bertcli_standardization"
"""The key of mean and scale in the checkpoints of a regression; a finished model has none."""
_PROBLEM_TYPES = ("single_label_classification", "multi_label_classification", "regression")
LONGEST = 512
"""Most tokens in a row for a model whose folder gives no length."""
_MOST_LABELS = 1 << 20
"""A limit of outputs that is higher than any head needs."""


def task_keys(settings: TaskSettings, labels: Sequence[str]) -> dict[str, Any]:
    """The keys of `config.json` that describe a task, except the class."""
    keys: dict[str, Any] = {
        SETTINGS: settings.model_dump(mode="json", include=set(TaskSettings.model_fields) - {"bad_bytes"})
    }
    if is_cross_encoder(settings, labels):
        keys |= cross_encoder_keys(settings)
    if settings.type == "regression":
        labels = ("LABEL_0",)  # transformers takes the number of outputs from them
    if labels:
        keys["id2label"] = {str(i): label for i, label in enumerate(labels)}
        keys["label2id"] = {label: i for i, label in enumerate(labels)}
    if settings.type in ("classification", "regression"):
        keys["problem_type"] = _problem_type(settings)
    return keys


def standardization_keys(standardization: Standardization) -> dict[str, Any]:
    """The key for a model whose output is not the number itself; empty for others."""
    return {} if standardization == AS_THEY_ARE else {STANDARDIZATION: asdict(standardization)}


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


def _problem_type(settings: TaskSettings) -> str:
    """The `problem_type` for which transformers computes the task's loss."""
    single, multi, regression = _PROBLEM_TYPES
    if settings.multi_label or settings.sigmoid:
        return multi
    return regression if settings.type == "regression" else single


def task_type(config: Mapping[str, Any], family: Family) -> TaskType | None:
    """The task that a model was fine-tuned for; None if it was not fine-tuned."""
    classes = _classes(config)
    settings = config.get(SETTINGS)
    if family.classes["encoder"] in classes and isinstance(settings, Mapping):  # a task without a head
        return "sentence-embedding" if settings.get("type") == "sentence-embedding" else None
    for task in TASKS:
        if family.classes.get(task_class(task).head or "") in classes:
            return "regression" if task == "classification" and _is_regression(config) else task
    return None


def _is_regression(config: Mapping[str, Any]) -> bool:
    """True if a model of transformers' one class for classification and regression is a regression."""
    if isinstance(own := config.get(SETTINGS), Mapping):
        return own.get("type") == "regression"
    problem = config.get("problem_type")
    return problem == "regression" or (problem is None and len(_names_of_outputs(config)) == 1)


def read_task(
    config: Mapping[str, Any], family: Family, max_positions: int, where: Path
) -> tuple[TaskSettings, tuple[str, ...]]:
    """The settings of a fine-tuned model, and its labels in the order of the outputs.

    The columns of a folder that bertcli did not write have transformers' usual names: `text`, and `choices`
    (a list) for multiple choice; rows are as long as the model reads, at most 512 tokens.

    Args:
        config: the full `config.json`.
        max_positions: the number of positions of the model.
        where: the file, for messages.

    Raises:
        UserError: the model is not fine-tuned; its settings or its labels cannot be used.
    """
    task = task_type(config, family)
    if task is None:
        classes = _classes(config)
        masked = any(family.classes.get(kind) in classes for kind in ("pretraining", "masked-lm"))
        other = classes[0] if classes else f"a {family.name} without a head"
        what = "a masked language model" if masked else other
        raise UserError(
            f"{where}: this is {what}, not a fine-tuned model; fine-tune it first: bertcli finetune CONFIG"
        )
    values = config[SETTINGS] if SETTINGS in config else _usual_settings(task, config, max_positions)
    settings = check_config(TaskSettings, values, f"{where}, {SETTINGS}")
    if task in ("question-answering", "multiple-choice", "sentence-embedding"):
        return settings, ()
    names = _names_of_outputs(config)
    if task == "regression":
        if len(names) > 1:
            raise UserError(
                f"{where}: a regression with {len(names)} values a row; bertcli supports one value"
            )
        return settings, ()
    if len(set(names)) < len(names):
        raise UserError(f"{where}: id2label gives two outputs the same name; each label must be unique")
    return settings, names


def _classes(config: Mapping[str, Any]) -> list[Any]:
    classes = config.get("architectures")
    return classes if isinstance(classes, list) else []


def _usual_settings(task: TaskType, config: Mapping[str, Any], max_positions: int) -> dict[str, Any]:
    """The settings of a model that was not written by bertcli."""
    length = min(max_positions, LONGEST)
    settings: dict[str, Any] = {"type": task, "max_length": length, "doc_stride": length // 4}
    if task in ("classification", "regression", "multiple-choice"):
        settings["text"] = "text"
    if task == "multiple-choice":
        settings["choices"] = "choices"
    if task == "question-answering":
        settings["null_threshold"] = None
    if task == "classification":
        settings["multi_label"] = config.get("problem_type") == "multi_label_classification"
    return settings


def _names_of_outputs(config: Mapping[str, Any]) -> tuple[str, ...]:
    """The labels in the order of their numbers; without labels, the names that transformers gives."""
    id2label = config.get("id2label")
    if isinstance(id2label, Mapping):
        return tuple(str(id2label[i]) for i in sorted(id2label, key=lambda i: (len(i), i)))
    number = config.get("num_labels")
    return tuple(f"LABEL_{i}" for i in range(min(number, _MOST_LABELS) if isinstance(number, int) else 2))
