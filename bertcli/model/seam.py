"""Plain functions that `bertcli.model.fast` replaces by faster ones, and the switch that turns these off."""

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
_faster: dict[Callable[..., Any], list[Any]] = {}


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


def replaceable(plain: Callable[P, R]) -> Callable[P, R]:
    """Decorates a plain function or method, for which `replace` may name a faster one."""
    faster: list[tuple[Callable[..., bool], Callable[P, R]]] = []

    @wraps(plain)
    def choose(*args: P.args, **kwargs: P.kwargs) -> R:
        for applies, fast in faster:
            if applies(*args, **kwargs):
                return fast(*args, **kwargs)
        return plain(*args, **kwargs)

    _faster[choose] = faster
    return choose


def replace(plain: Callable[..., R], fast: Callable[..., R], when: Callable[..., bool]) -> None:
    """From now on `fast`, which computes the same as the `replaceable` function `plain`, is called in its
    place if `when` is true for the arguments."""
    _faster[plain].append((when, fast))
