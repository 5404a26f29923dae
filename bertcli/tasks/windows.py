"""A long text or pair -> several rows, and what a model says of them -> what it says of the text."""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import torch
from torch import Tensor

from bertcli.config.task import TaskSettings, WindowMode
from bertcli.tasks.supervised import cut_windows
from bertcli.tokenizer.frame import Frame, Row

Place = tuple[range, range]
"""The tokens of the first and of the second text in a row; those of a missing second text are empty."""


class Divided(NamedTuple):
    """The rows of a text or of a pair, at least one; `dropped` tokens are in none of them."""

    rows: list[Row]
    dropped: int


@dataclass(frozen=True)
class Windows:
    """How a text that is longer than a row is read.

    Attributes:
        mode: the key `task.windows`.
        max_length: most tokens of a row, special ones included.
        stride: tokens that two windows share, at most half of a window.
        most: most windows of a text.
    """

    mode: WindowMode
    max_length: int
    stride: int
    most: int

    @classmethod
    def of(cls, settings: TaskSettings) -> Windows:
        """The windows of a task."""
        return cls(settings.windows, settings.max_length, settings.doc_stride, most=settings.max_windows)

    def places(self, a: int, b: int | None, frame: Frame) -> list[Place]:
        """The tokens in each row of a text of `a` tokens, or of a pair of `a` and `b` tokens.

        The longer text of a pair is divided. The shorter one is in every row; it keeps what `Frame.fit` keeps
        of it, which is all of it up to half of a row. The first row is therefore the row of `Frame.fit`.
        """
        room = self.max_length - frame.cost(b is not None)
        longer, shorter = (a, 0) if b is None else (max(a, b), min(a, b, room // 2))
        room -= shorter
        windows = [range(min(longer, room))]
        if self.mode != "first" and longer > room:
            windows = cut_windows([1] * longer, room, overlap=min(self.stride, room // 2))[: self.most]
        whole = range(shorter)
        return [(window, whole) if b is None or a > b else (whole, window) for window in windows]

    def divide(self, a: Sequence[int], b: Sequence[int] | None, frame: Frame) -> Divided:
        """The rows of a text or of a pair."""
        places = self.places(len(a), None if b is None else len(b), frame)
        rows = [
            frame.row(a[of_a.start : of_a.stop], None if b is None else b[of_b.start : of_b.stop])
            for of_a, of_b in places
        ]
        last_a, last_b = places[-1]
        dropped = len(a) - last_a.stop + (0 if b is None else len(b) - last_b.stop)
        compact = [replace(row, ids=array("i", row.ids)) for row in rows]  # a list takes five times more
        return Divided(compact, dropped)

    def join(self, outputs: Tensor, sizes: Sequence[int], lengths: Sequence[int] | None = None) -> Tensor:
        """The output of each text, [texts, ...], from those of its windows, [rows, ...].

        Args:
            sizes: the number of windows of each text.
            lengths: the number of tokens of each window, by which a mean is weighted; None: all are equal.
        """
        if len(sizes) == len(outputs):
            return outputs
        weights = torch.ones(len(outputs)) if lengths is None else torch.tensor(lengths, dtype=torch.float32)
        weights = weights.to(outputs.device).view(-1, *[1] * (outputs.ndim - 1))
        pairs = zip(outputs.split(list(sizes)), weights.split(list(sizes)), strict=True)
        return torch.stack([self._joined(*pair) for pair in pairs])

    def _joined(self, outputs: Tensor, weights: Tensor) -> Tensor:
        if len(outputs) == 1:
            return outputs[0]
        return outputs.amax(dim=0) if self.mode == "max" else (outputs * weights).sum(dim=0) / weights.sum()
