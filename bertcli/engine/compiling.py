"""`training.compile`: what of a model torch compiles, and for which runs that is worth its price."""

from __future__ import annotations

from typing import Any, cast

import torch
from torch import nn

from bertcli.model.architecture import Architecture
from bertcli.model.flops import training_flops

LARGEST_RATE = 4e14
"""Operations a second, as `model.flops` counts them, that no GPU of today exceeds with a BERT that is not
compiled: taken as given, so that a run is never thought longer than it is."""
_WORTH_FROM = 180.0
"""Seconds that a run takes uncompiled from which on it is sooner done compiled: compiling takes up to 40, and
saves a fourth or more of what follows. Taken as given."""
_LAUNCH_SECONDS = 10e-6
"""To start a kernel from Python; taken as given. A layer takes about 100 of them, forward and backward, and
what is not in a layer 150."""


def is_worth_compiling(
    architecture: Architecture,
    tokens: float,
    at_once: int,
    length: int,
    predicted: float,
    device: torch.device,
) -> bool:
    """What `compile: auto` is for a run of so many `tokens`, `at_once` of them in a micro-batch.

    Never on a CPU: there the model's own kernels, which a compiler leaves aside, are the faster ones.

    Args:
        length, predicted: as in `model.flops.forward_flops`.
    """
    by_products = tokens * training_flops(architecture, length, predicted) / LARGEST_RATE
    by_launches = tokens / at_once * launch_seconds(architecture.layers)
    return device.type == "cuda" and max(by_products, by_launches) >= _WORTH_FROM


def launch_seconds(layers: int) -> float:
    """What a micro-batch takes at least on any GPU, however small the model."""
    return _LAUNCH_SECONDS * (100 * layers + 150)


def compile_layers(model: nn.Module) -> None:
    """Have every layer compiled at its first pass: once for all of them, as they differ in weights alone.

    What is around them is too little of a step to be worth the time. Call it before `wrapping.distribute`,
    which puts its communication between the layers.
    """
    for layer in cast(Any, model).body.encoder.layers:
        layer.compile()
