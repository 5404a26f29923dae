"""A model folder -> the model to fine-tune: its body, the task's head, the lowest layers frozen if asked."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import torch

from bertcli.config.finetune import FinetuneConfig
from bertcli.data.random import make_key
from bertcli.engine.optimizer import freeze
from bertcli.errors import UserError
from bertcli.hf.config_file import read_architecture
from bertcli.hf.task_folder import load_for_finetuning
from bertcli.model.shallow import keep_layers
from bertcli.model.task_models import AS_THEY_ARE, Standardization, TaskModel


def new_task_model(
    config: FinetuneConfig,
    source: Path,
    labels: tuple[str, ...],
    say: Callable[[str], None],
    standardization: Standardization = AS_THEY_ARE,
) -> TaskModel:
    """The names of new and unused weights are given to `say`; new ones are initialized from the seed.

    Raises:
        UserError: `source` cannot be read, or has fewer layers than should be kept or frozen.
    """
    torch.manual_seed(int(make_key(config.training_seed, "init")))
    loaded = load_for_finetuning(
        source,
        config.task.settings,
        labels,
        pooling=config.task.pooling,
        standardization=standardization,
    )
    model, report, frozen = loaded.model, loaded.report, config.training.freeze_layers
    say(f"model: {source}, {len(report.loaded)} tensors loaded")
    if report.new:
        say(f"  new: {', '.join(report.new)}")
    if report.left_aside:
        say(f"  left aside: {', '.join(report.left_aside)}")
    if model.architecture.dropout > read_architecture(source / "config.json").dropout:
        rate = model.architecture.dropout
        say(f"  dropout: {rate:g} instead of 0, with which the two readings of a text would be equal")
    if config.training.keep_layers is not None:
        keep_layers(model, config.training.keep_layers)
    if frozen > model.architecture.layers:
        raise UserError(
            f"training.freeze_layers: {frozen}, but the model has only {model.architecture.layers} layers"
        )
    freeze(model, frozen)
    model.body.encoder.activation_checkpointing = config.training.activation_checkpointing
    return model
