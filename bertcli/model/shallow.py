"""A model with fewer of its layers."""

from __future__ import annotations

from dataclasses import replace

from torch import nn

from bertcli.errors import UserError
from bertcli.model.task_models import TaskModel


def evenly_spaced(layers: int, kept: int) -> list[int]:
    """The numbers of the layers that are kept, the first and the last among them: 0, 2, 4, 7, 9, 11 for six
    of twelve (Sanh et al. 2019)."""
    return [round(number * (layers - 1) / max(1, kept - 1)) for number in range(kept)]


def keep_layers(model: TaskModel, number: int) -> None:
    """Leave `number` layers in the model, evenly spaced.

    Raises:
        UserError: it has fewer; several groups of layers share their weights.
    """
    sizes, encoder = model.architecture, model.body.encoder
    if number > sizes.layers:
        raise UserError(f"training.keep_layers: {number}, but the model has only {sizes.layers} layers")
    if sizes.layer_groups not in (None, 1):
        raise UserError(
            f"training.keep_layers: the layers of this model share weights in {sizes.layer_groups} groups, "
            "which cannot be thinned out; leave it out"
        )
    kept = evenly_spaced(sizes.layers, number)
    if sizes.layer_groups is None:
        encoder.layers = nn.ModuleList(encoder.layers[layer] for layer in kept)
    local = tuple(sizes.local_layers[layer] for layer in kept) if sizes.local_layers else ()
    model.architecture = replace(sizes, layers=number, local_layers=local)
    encoder.order = model.architecture.layer_order
