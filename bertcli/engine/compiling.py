"""`training.compile`: which parts of a model torch compiles, and for which runs that saves time."""

from __future__ import annotations

import torch
from torch import nn

from bertcli.model.architecture import Architecture
from bertcli.model.encoder import encoders
from bertcli.model.flops import training_flops

LARGEST_RATE = 4e14
"""Operations a second, as `model.flops` counts them, that no current GPU exceeds with an uncompiled BERT; an
assumption, so that the time of a run is never overestimated."""
_WORTH_FROM = 180.0
"""Seconds of an uncompiled run from which compiling saves time: it takes up to 40 seconds, and saves at least
a fourth of the rest. An assumption."""
_LAUNCH_SECONDS = 10e-6
"""To start a kernel from Python; an assumption. A layer needs about 100 kernels, forward and backward, and
the rest of the model 150."""


def is_worth_compiling(
    architecture: Architecture,
    tokens: float,
    at_once: int,
    length: int,
    predicted: float,
    device: torch.device,
) -> bool:
    """The value of `compile: auto` for a run of `tokens` tokens, `at_once` of them in a micro-batch.

    Never on a CPU: there the model's own kernels, which a compiler does not use, are faster.

    Args:
        length, predicted: as in `model.flops.forward_flops`.
    """
    by_products = tokens * training_flops(architecture, length, predicted) / LARGEST_RATE
    by_launches = tokens / at_once * launch_seconds(architecture.layers)
    return device.type == "cuda" and max(by_products, by_launches) >= _WORTH_FROM


def launch_seconds(layers: int) -> float:
    """The minimum time of a micro-batch on any GPU, also for a small model."""
    return _LAUNCH_SECONDS * (100 * layers + 150)


def compile_layers(model: nn.Module) -> None:
    """Compile every layer at its first pass: once for all, because they differ only in weights.

    The rest of the model is too small a part of a step. Call this before `wrapping.distribute`, which puts
    its communication between the layers.
    """
    for encoder in encoders(model):
        for layer in encoder.layers:
            layer.compile()
