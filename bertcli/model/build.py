"""Sizes from a config, a model without values, and positions that continue those of shorter rows."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode

from bertcli.config.schema import ModelConfig
from bertcli.model.architecture import Architecture


def architecture(config: ModelConfig, vocab_size: int) -> Architecture:
    """The sizes of `config`: those of the preset, unless a size is given itself."""
    layers, hidden, heads, feed_forward = config.sizes()
    return Architecture(
        vocab_size=vocab_size,
        hidden=hidden,
        layers=layers,
        heads=heads,
        feed_forward=feed_forward,
        max_positions=config.max_positions,
        dropout=config.dropout,
        attention_dropout=config.dropout,
    )


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


def tile_positions(table_TD: Tensor, known: int, offset: int = 0) -> Tensor:
    """A position table in which the positions from `known` on are repeated copies of the first `known`.

    So what was learned about neighbors on rows of `known` tokens also holds at later positions, except where
    two copies meet (Beltagy et al. 2020, "Longformer", section 5). The first token's position, row `offset`
    of the table, is not copied.
    """
    beyond_T = torch.arange(known, len(table_TD) - offset, device=table_TD.device)
    return torch.cat([table_TD[: offset + known], table_TD[offset + 1 + (beyond_T - 1) % (known - 1)]])
