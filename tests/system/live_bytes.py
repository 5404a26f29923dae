"""What torch's tensors hold at most while some code runs, whatever the allocator makes of it."""

from __future__ import annotations

import weakref
from collections.abc import Iterable
from typing import Any

from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_iter


class LiveBytes(TorchDispatchMode):
    """Counts storages that come into being within it, and lets go of those that are freed."""

    def __init__(self, known: Iterable[Tensor]) -> None:
        """`known` tensors are not counted, nor what looks at their storage."""
        super().__init__()
        self.peak = self._now = 0
        self._live: dict[int, int] = {}
        self._known = {tensor.untyped_storage()._cdata for tensor in known}

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        for value in tree_iter(result):
            if isinstance(value, Tensor):
                self._add(value)
        return result

    def _add(self, tensor: Tensor) -> None:
        storage = tensor.untyped_storage()
        key = storage._cdata
        if key in self._live or key in self._known or not storage.nbytes():
            return
        self._live[key] = storage.nbytes()
        self._now += storage.nbytes()
        self.peak = max(self.peak, self._now)
        weakref.finalize(storage, self._forget, key)

    def _forget(self, key: int) -> None:
        self._now -= self._live.pop(key)
