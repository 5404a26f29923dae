"""One switch for all fast paths, and the decorator that replaces a plain function by a fast one."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from typing import Any, ParamSpec, TypeVar

import torch
from torch import Tensor

P = ParamSpec("P")
R = TypeVar("R")

PATHS = frozenset({"attention", "disentangled", "dropout", "last_layer", "packing", "window", "written_out"})
_off: frozenset[str] = frozenset()


@contextmanager
def plain_path(*paths: str) -> Iterator[None]:
    """Inside, models do not use these `PATHS`; without arguments, none of them.

    For reading, for export, and for comparison. A backward pass must be inside with its forward pass.
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
    """For paths that are faster only on a CPU: GPUs and compiled code have their own."""
    return is_on(path) and values.device.type == "cpu" and not torch.compiler.is_compiling()


def replaced_by(
    fast: Callable[..., Any], when: Callable[..., bool]
) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Decorates a plain function: `fast`, which computes the same, is called instead if `when` is true for
    the arguments."""

    def decorate(plain: Callable[P, R]) -> Callable[P, R]:
        @wraps(plain)
        def choose(*args: P.args, **kwargs: P.kwargs) -> R:
            return fast(*args, **kwargs) if when(*args, **kwargs) else plain(*args, **kwargs)

        return choose

    return decorate
