"""LayerNorm (Ba et al. 2016) with the epsilon of an architecture."""

from __future__ import annotations

from torch import nn

from bertcli.model.architecture import Architecture


def layer_norm(architecture: Architecture, width: int | None = None) -> nn.LayerNorm:
    """Of `width` values; None: of the hidden size."""
    return nn.LayerNorm(
        width or architecture.hidden, eps=architecture.layer_norm_eps, bias=architecture.biases
    )
