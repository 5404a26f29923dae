"""Sizes from a config, a model of sizes alone, and positions that continue those of shorter rows."""

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
    """The sizes that `config` asks for: the preset's, with those given one by one in their place."""
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
    """A model that is built inside has parameters of its sizes on the meta device, but no values."""
    with torch.device("meta"), _Uninitialized():
        yield


class _Uninitialized(TorchFunctionMode):
    """New modules are not initialized: on the meta device torch would first import its compiler for it."""

    def __torch_function__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        if getattr(func, "__module__", None) == "torch.nn.init":
            return None
        return func(*args, **(kwargs or {}))


def tile_positions(table_TD: Tensor, known: int, offset: int = 0) -> Tensor:
    """A position table in which every position from `known` on has the embedding of a trained one, in turn.

    What was learned about neighbors on rows of `known` tokens then holds further on as well, but where
    two copies meet (Beltagy et al. 2020, "Longformer", section 5). The first token's position, row `offset`
    of the table, is not copied.
    """
    beyond_T = torch.arange(known, len(table_TD) - offset, device=table_TD.device)
    return torch.cat([table_TD[: offset + known], table_TD[offset + 1 + (beyond_T - 1) % (known - 1)]])
