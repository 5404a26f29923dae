"""One switch for all fast paths, and how one of them takes the place of a plain function."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from typing import Any, ParamSpec, TypeVar

import torch
from torch import Tensor

P = ParamSpec("P")
R = TypeVar("R")

PATHS = frozenset({"attention", "dropout", "last_layer", "packing", "written_out"})
_off: frozenset[str] = frozenset()


@contextmanager
def plain_path(*paths: str) -> Iterator[None]:
    """Inside, every model computes without these of `PATHS`; without all of them where none is named.

    For reading, for export, and for comparing. A backward pass belongs inside with its forward pass.
    """
    global _off
    before, _off = _off, _off | (frozenset(paths) or PATHS)
    try:
        yield
    finally:
        _off = before


def is_on(path: str) -> bool:
    return path not in _off


def is_on_cpu(path: str, values: Tensor) -> bool:
    """For paths that are faster on a CPU alone: GPUs, and what a compiler makes, have their own."""
    return is_on(path) and values.device.type == "cpu" and not torch.compiler.is_compiling()


def replaced_by(
    fast: Callable[..., Any], when: Callable[..., bool]
) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Decorates a plain function: `fast`, which gives the same, is called in its place `when` that holds of
    the arguments."""

    def decorate(plain: Callable[P, R]) -> Callable[P, R]:
        @wraps(plain)
        def choose(*args: P.args, **kwargs: P.kwargs) -> R:
            return fast(*args, **kwargs) if when(*args, **kwargs) else plain(*args, **kwargs)

        return choose

    return decorate
