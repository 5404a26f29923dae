"""A model without values, and positions that continue those of shorter rows."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.parameter import Parameter
from torch.overrides import TorchFunctionMode


@contextmanager
def sizes_alone() -> Iterator[None]:
    """A model that is built inside has parameters on the meta device: shapes, but no values."""
    with torch.device("meta"), _Uninitialized():
        yield


class _Uninitialized(TorchFunctionMode):
    """Skips initialization, for which torch would import its compiler on the meta device."""

    def __torch_function__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        if getattr(func, "__module__", None) == "torch.nn.init":
            return None
        return func(*args, **(kwargs or {}))


def position_tables(model: nn.Module) -> list[Parameter]:
    """All position tables of a model, each once; with shared ones, also the differences of them."""
    names = ("embeddings.position.weight", "embeddings.position.difference", "mask_decoder.positions.weight")
    return [parameter for name, parameter in model.named_parameters() if name.endswith(names)]


def tile_positions(table_TD: Tensor, known: int, offset: int = 0) -> Tensor:
    """A position table in which the positions from `known` on are repeated copies of the first `known`.

    So what was learned about neighbors on rows of `known` tokens also holds at later positions, except where
    two copies meet (Beltagy et al. 2020, "Longformer", section 5). The first token's position, row `offset`
    of the table, is not copied.
    """
    beyond_T = torch.arange(known, len(table_TD) - offset, device=table_TD.device)
    return torch.cat([table_TD[: offset + known], table_TD[offset + 1 + (beyond_T - 1) % (known - 1)]])
