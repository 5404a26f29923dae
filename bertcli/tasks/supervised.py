"""The contract of the tasks that learn from labeled files, and the batch that they share."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Protocol

import torch
from torch import Tensor, nn

from bertcli.data.rows import RowBatch, batch_of
from bertcli.data.share import MicroBatch, Share
from bertcli.tasks.base import Term
from bertcli.text.frame import Row
from bertcli.text.tokenizer import Tokenizer

CPU = torch.device("cpu")


@dataclass(frozen=True, slots=True)
class Item:
    """What cannot be torn apart in a batch: a row, or the rows of all choices of one question.

    Attributes:
        example: number of the example that it was made of, within the examples encoded together.
        rows: what the model reads.
        target: what it should answer, in the task's own form; None where unlabeled.
        layout: what `predict` needs to read the answer back: where words or characters stand.
        dropped: tokens of the example that did not fit into its longest row, and were left out.
        whole: tokens of the whole example as one row, special ones included, however it was cut or divided.
    """

    example: int
    rows: tuple[Row, ...]
    target: Any
    layout: Any = None
    dropped: int = 0
    whole: int = 0

    @property
    def length(self) -> int:
        """Tokens of the longest row."""
        return max(len(row.ids) for row in self.rows)


@dataclass(frozen=True)
class LabeledBatch:
    """Items of one optimizer step, or of one forward pass; satisfies `tasks.base.TaskBatch`."""

    items: tuple[Item, ...]
    pad_id: int
    device: torch.device = CPU

    @property
    def num_rows(self) -> int:
        """Of all items: a long text has several."""
        return sum(len(item.rows) for item in self.items)

    @property
    def num_tokens(self) -> int:
        """Real tokens: padding is not counted."""
        return sum(len(row.ids) for item in self.items for row in item.rows)

    @cached_property
    def rows(self) -> RowBatch:
        """All rows of all items, in order, on the batch's device."""
        return batch_of([row for item in self.items for row in item.rows], self.pad_id, self.device)

    def to(self, device: torch.device) -> LabeledBatch:
        """The batch, whose tensors will be made on that device."""
        return replace(self, device=device)

    def micro_batches(self, share: Share) -> list[MicroBatch]:
        """One rank's share of the step, items of like length together; an item is never torn apart."""
        parts: list[list[Item]] = []
        rows = 0
        for item in sorted(self.items, key=lambda item: -item.length):
            if not parts or rows + len(item.rows) > share.micro_batch_size:
                parts.append([])
                rows = 0
            parts[-1].append(item)
            rows += len(item.rows)
        return share.of(parts, lambda items: replace(self, items=tuple(items)))


class Prediction(Protocol):
    """A task's answer for one example."""

    def as_json(self) -> dict[str, Any]:
        """What `bertcli predict` prints for it, beside the text."""
        ...


class LabeledTask(Protocol):
    """Examples -> items; logits -> loss, predictions and scores. Its model: `model.task_models`.

    Each task reads examples of one kind (`labeled.examples`) and gives predictions of its own.
    """

    metric: str
    """The key of `score` that picks the best checkpoint, unless the config names another."""

    @property
    def labels(self) -> tuple[str, ...]:
        """In the order of the head's outputs; empty where outputs have no names."""
        ...

    def encode(self, examples: Sequence[Any], tokenizer: Tokenizer) -> list[Item]:
        """One or more items for each example, in the examples' order.

        Raises `UserError` for an example that cannot be used, naming its `where`.
        """
        ...

    def count(self, batch: LabeledBatch) -> float:
        """What the loss is divided by: how many answers the batch asks for."""
        ...

    def term(self, logits: Tensor, batch: LabeledBatch) -> Term:
        """The loss of a batch with targets, summed over what `count` counts."""
        ...

    def split_logits(self, logits: Tensor, batch: LabeledBatch) -> list[Tensor]:
        """The logits of each item, without padding."""
        ...

    def predict(self, example: Any, items: Sequence[Item], logits: Sequence[Tensor]) -> Prediction:
        """The answer for one example, from all of its items and their logits (fp32, on the CPU)."""
        ...

    def is_right(self, example: Any, prediction: Any) -> bool:
        """Whether a labeled example was answered rightly (for the file of wrong cases)."""
        ...

    def score(self, examples: Sequence[Any], predictions: Sequence[Any]) -> Mapping[str, Any]:
        """The task's metrics by name: floats, and tables (nested dicts, lists) where it has them.

        Higher is better in every float that may serve as `metric`, but for a name that ends in `_error`.
        """
        ...


def whole_lengths(items: Sequence[Item]) -> list[int]:
    """`Item.whole` of each example, in order; several windows are one example."""
    return list({item.example: item.whole for item in items}.values())


def forward(model: nn.Module, batch: LabeledBatch) -> Tensor:
    """The logits of all rows of a batch: [B, C], [B, T, C] or [B, T, 2] (`model.task_models`)."""
    rows = batch.rows
    return model(rows.ids_BT, rows.segments_BT, rows.mask_BT)


@dataclass(frozen=True)
class Supervised:
    """A labeled task as the training loop sees it (`tasks.base.Task`): one term, without a name."""

    task: LabeledTask

    def counts(self, batch: LabeledBatch) -> dict[str, float]:
        return {"": self.task.count(batch)}

    def terms(self, model: nn.Module, batch: LabeledBatch) -> dict[str, Term]:
        return {"": self.task.term(forward(model, batch), batch)}
