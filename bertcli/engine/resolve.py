"""Every `auto` and every default that depends on data or machine -> a value, once, at the start of a run."""

from __future__ import annotations

import math
from typing import Any

from bertcli.config.schema import PretrainConfig
from bertcli.data.stream import BatchStream
from bertcli.errors import UserError
from bertcli.hardware import (
    auto_micro_batch_size,
    resolve_device,
    resolve_precision,
    resolve_workers,
)
from bertcli.model.architecture import Architecture

DEFAULT_STEPS = 1000


def adopt_decisions(config: PretrainConfig, saved: PretrainConfig) -> PretrainConfig:
    """Where `config` says auto, what the saved run decided: a resume never decides anew."""
    training = {
        key: getattr(saved.training, key)
        for key in ("micro_batch_size", "precision", "device", "compile")
        if getattr(config.training, key) == "auto"
    }
    data = {"workers": saved.data.workers} if config.data.workers == "auto" else {}
    return _update(config, training=training, data=data)


def resolve_config(config: PretrainConfig, architecture: Architecture, stream: BatchStream) -> PretrainConfig:
    """The config with every value that the run will use.

    Raises `UserError` for rows longer than the model of `init_from` reads, or a device that is not there.
    """
    if config.data.max_length > architecture.max_positions:
        raise UserError(
            f"data.max_length ({config.data.max_length}) is longer than the positions of the model in "
            f"{config.model.init_from} ({architecture.max_positions}); lower data.max_length"
        )
    training = config.training
    device = resolve_device(training.device)
    micro_batch_size = training.micro_batch_size
    if micro_batch_size == "auto":
        micro_batch_size = auto_micro_batch_size(
            architecture, training.batch_size, config.data.max_length, device
        )
    return _update(
        config,
        data={"workers": resolve_workers(config.data.workers, device)},
        model={
            "layers": architecture.layers,
            "hidden": architecture.hidden,
            "heads": architecture.heads,
            "feed_forward": architecture.feed_forward,
            "max_positions": architecture.max_positions,
        },
        training={
            "steps": num_steps(config, stream),
            "epochs": None,
            "micro_batch_size": min(micro_batch_size, training.batch_size),
            "precision": resolve_precision(training.precision, device),
            "device": str(device),
            "compile": training.compile is True,
        },
    )


def num_steps(config: PretrainConfig, stream: BatchStream) -> int:
    """Steps asked for; an epoch is as many full rows as hold the corpus's tokens once."""
    if config.training.epochs is None:
        return config.training.steps or DEFAULT_STEPS
    per_step = config.training.batch_size * stream.max_tokens
    return math.ceil(config.training.epochs * stream.store.num_tokens / per_step)


def _update(config: PretrainConfig, **sections: dict[str, Any]) -> PretrainConfig:
    updated = {name: getattr(config, name).model_copy(update=values) for name, values in sections.items()}
    return config.model_copy(update=updated)
