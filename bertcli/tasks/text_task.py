"""A text or a pair -> one answer, by a row or by windows: what classes and numbers share."""

from __future__ import annotations

from abc import abstractmethod
from array import array
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import torch
from torch import Tensor

from bertcli.config.task import TaskSettings, WindowMode
from bertcli.tasks.examples import TextExample
from bertcli.tasks.labeled_texts import may_be_labeled_texts
from bertcli.tasks.row_words import Part, ReadRow, read_parts, text_places
from bertcli.tasks.scores import reranking_scores
from bertcli.tasks.shown import Output
from bertcli.tasks.supervised import (
    Item,
    Items,
    LabeledBatch,
    LabeledTask,
    Logits,
    cut_windows,
    encode_texts,
)
from bertcli.tokenizer.frame import Frame, Row
from bertcli.tokenizer.tokenizer import Tokenizer

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


class TextTask(LabeledTask):
    """A task whose head gives the logits of a row; those of a text are joined from its windows."""

    head = "sequences"
    pipeline_tag = "text-classification"
    may_be_in = staticmethod(may_be_labeled_texts)

    def __init__(self, settings: TaskSettings, labels: tuple[str, ...] = ()):
        super().__init__(settings, labels)
        self.windows = Windows.of(settings)

    @abstractmethod
    def target(self, label: Any) -> Any:
        """The target of the loss for a label."""

    def encode(self, examples: Sequence[TextExample], tokenizer: Tokenizer) -> list[Item]:
        """An item for each example, with a row for each window."""
        items: list[Item] = []
        for number, (example, texts) in enumerate(encode_texts(examples, tokenizer)):
            b = texts[1] if len(texts) > 1 else None
            rows, dropped = self.windows.divide(texts[0], b, tokenizer.frame)
            answer = None if example.label is None else self.target(example.label)
            full = sum(map(len, texts)) + tokenizer.frame.cost(b is not None)
            sizes = {"dropped": dropped, "full_length": full, "windows": len(rows)}
            items.append(Item(number, tuple(rows), answer, **sizes))
        return items

    def answers(self, logits: Tensor, batch: LabeledBatch) -> Tensor:
        """The logits of each text, float32 [B, C]."""
        return self.windows.join(logits.float(), [len(item.rows) for item in batch.items])

    def split_logits(self, logits: Tensor, batch: LabeledBatch) -> list[Tensor]:
        """The logits of each text's windows, [windows, C]."""
        return list(logits.split([len(item.rows) for item in batch.items]))

    def logits_of_text(self, logits: Logits) -> Tensor:
        """The logits [C] of a text from those of its only item."""
        (windows_WC,) = logits
        return self.windows.join(windows_WC, [len(windows_WC)])[0]

    def output(self, example: TextExample, items: Items, logits: Logits, target: int | None) -> Output:
        """The logit of an answer in the window where it is highest."""
        best = int(self.logits_of_text(logits).argmax()) if target is None else target
        (windows_WC,) = logits
        row = int(windows_WC[:, best].argmax())
        return Output(self.labels[best], lambda logits_BC: logits_BC[:, best], row=row)

    def read(self, example: TextExample, item: Item, number: int, tokenizer: Tokenizer) -> ReadRow:
        """A window: all of the shorter text of a pair, and a part of the other one."""
        lengths = [len(ids) for ids in tokenizer.encode_batch(example.texts)]
        frame, row = tokenizer.frame, item.rows[number]
        windows = self.windows.places(lengths[0], lengths[1] if len(lengths) > 1 else None, frame)[number]
        places = zip(example.texts, text_places(row, frame), windows, strict=False)
        parts = [
            Part(text, tokens, segment, skipped=window.start)
            for segment, (text, tokens, window) in enumerate(places)
        ]
        return read_parts(row, parts, tokenizer)


def pair_ranking(
    examples: Sequence[TextExample], labels: Sequence[float], scores: Sequence[float]
) -> dict[str, float]:
    """`tasks.scores.reranking_scores` of pairs, by their first texts; empty for single texts."""
    if any(len(example.texts) == 1 for example in examples):
        return {}
    return reranking_scores([example.texts[0] for example in examples], labels, scores)
