"""The replacement of plain functions by those of `bertcli.model.fast`, and the switch to turn it off."""

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
    """Turn off the given faster `PATHS` inside the context; no name means all of them.

    This serves reading, export and comparison. A backward pass must be inside together with its forward pass.
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
    """True if a path that is faster only on a CPU applies; GPUs and compiled code have their own."""
    return is_on(path) and values.device.type == "cpu" and not torch.compiler.is_compiling()


def replaceable(plain: Callable[P, R]) -> Callable[P, R]:
    """Decorate a plain function or method for which `replace` may name a faster one."""
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
    """Call `fast` in place of the `replaceable` function `plain`, which computes the same, if `when` is true
    for the arguments."""
    _faster[plain].append((when, fast))
