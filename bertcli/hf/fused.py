"""Dense layers that a folder holds as one <-> separate ones, as our models have them; same bytes."""

from __future__ import annotations

import re
from collections.abc import Mapping

import torch
from torch import Tensor

from bertcli.families.family import Family, Fused


def split_fused(family: Family, weights: Mapping[str, Tensor], heads: int) -> dict[str, Tensor]:
    """`<name>.weight` -> `<name>.query.weight` and so on, for the layers of `Family.fused`.

    `heads`: of attention. A weight whose rows cannot be divided stays as it is: it does not fit the model.
    """
    split: dict[str, Tensor] = {}
    for name, value in weights.items():
        module, _, parameter = name.rpartition(".")
        fused = family.fused
        if fused is None or not re.fullmatch(fused.name, module) or len(value) % _pieces(fused, heads):
            split[name] = value
            continue
        if fused.by_head:
            by_head = value.unflatten(0, (heads, len(fused.parts), -1)).unbind(1)
            parts = [rows.flatten(0, 1) for rows in by_head]
        else:
            parts = list(value.chunk(len(fused.parts)))
        for part, rows in zip(fused.parts, parts, strict=True):
            split[f"{module}.{part}.{parameter}"] = rows
    return split


def join_fused(family: Family, weights: Mapping[str, Tensor], heads: int) -> dict[str, Tensor]:
    """The inverse of `split_fused`."""
    fused = family.fused
    if fused is None:
        return dict(weights)
    joined: dict[str, Tensor] = {}
    for name, value in weights.items():
        module, _, parameter = name.rpartition(".")
        whole, _, part = module.rpartition(".")
        if part not in fused.parts or not re.fullmatch(fused.name, whole):
            joined[name] = value
        elif part == fused.parts[0]:
            parts = [weights[f"{whole}.{each}.{parameter}"] for each in fused.parts]
            if fused.by_head:
                by_head = [each.unflatten(0, (heads, -1)) for each in parts]
                joined[f"{whole}.{parameter}"] = torch.stack(by_head, dim=1).flatten(0, 2)
            else:
                joined[f"{whole}.{parameter}"] = torch.cat(parts)
    return joined


def _pieces(fused: Fused, heads: int) -> int:
    return len(fused.parts) * (heads if fused.by_head else 1)
