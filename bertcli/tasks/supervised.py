"""The base class of the tasks that learn from labeled files, and the batch that they share."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pkgutil import resolve_name
from typing import Any, Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from bertcli.batches.batch import RowBatch, batch_of
from bertcli.batches.order import EpochOrder
from bertcli.batches.share import MicroBatch, Share, in_parts
from bertcli.config.task import ClassWeights, TaskSettings
from bertcli.model.task_models import AS_THEY_ARE, Standardization
from bertcli.objectives.base import Term
from bertcli.system.terminal import Report, short
from bertcli.tasks.examples import AnyExample
from bertcli.tasks.facts import TaskFacts
from bertcli.tasks.registry import TASKS
from bertcli.tasks.shown import LONGEST, Prediction, ShownTask
from bertcli.tokenizer.frame import Row
from bertcli.tokenizer.tokenizer import Tokenizer

CPU = torch.device("cpu")
NEVER = -1e30
"""A logit whose probability is 0; not infinite, so that a difference of two is a number."""


@dataclass(frozen=True, slots=True)
class Item:
    """The smallest part of a batch: a row, or rows that are answered together: choices, windows, texts.

    Attributes:
        example: the number of its example among those encoded together.
        rows: the input of the model.
        target: the right answer, in the task's own form; None if unlabeled.
        layout: the places of words or characters, from which `predict` maps the answer to the text.
        dropped: tokens of the example that are in none of its rows.
        full_length: tokens of the complete example as one row, with the special ones, before any cut.
        windows: rows that its longest text is divided into.
    """

    example: int
    rows: tuple[Row, ...]
    target: Any
    layout: Any = None
    dropped: int = 0
    full_length: int = 0
    windows: int = 1

    @property
    def length(self) -> int:
        """Tokens of the longest row."""
        return max(len(row.ids) for row in self.rows)


@dataclass(frozen=True)
class LabeledBatch:
    """Items of one optimizer step, or of one forward pass."""

    items: tuple[Item, ...]
    pad_id: int
    device: torch.device = CPU
    progress: float = 1.0
    """The share of the run's steps that were taken before this one."""

    @property
    def num_rows(self) -> int:
        """The rows of all items; a long text has several rows."""
        return sum(len(item.rows) for item in self.items)

    @property
    def num_tokens(self) -> int:
        """Real tokens, without padding."""
        return num_tokens(self.items)

    @cached_property
    def rows(self) -> RowBatch:
        """All rows of all items, in order, on the batch's device."""
        return batch_of([row for item in self.items for row in item.rows], self.pad_id, self.device)

    def to(self, device: torch.device) -> LabeledBatch:
        """The batch, whose tensors will be created on that device."""
        return replace(self, device=device)

    def micro_batches(self, share: Share) -> list[MicroBatch]:
        """One rank's share of the step, items of similar length together; an item is never split."""
        longest_first = sorted(self.items, key=lambda item: -item.length)
        parts = in_parts(longest_first, share.micro_batch_size, rows=lambda item: len(item.rows))
        return share.of(parts, lambda items: replace(self, items=tuple(items)))


Items = Sequence[Item]
"""The items of one example, or of several, in the order of the examples."""
Logits = Sequence[Tensor]
"""The logits of each item, without padding."""


class LabeledTask(TaskFacts, ShownTask):
    """Examples -> items; logits -> loss, predictions and scores. Its model: `model.task_models`.

    Each task has its own kinds of examples (`tasks.examples`) and predictions.

    Attributes:
        metric: the key of `score` that selects the best checkpoint, unless the config names another.
        labels: the labels in the order of the head's outputs; empty if outputs have no names.
        label_numbers: the number of each label, from 0.
        answer_kind: how logits become an answer: by softmax, each by a sigmoid, or as they are.
        head_rate: the factor of the learning rate of the last layer.
        standardization: the mean and the scale of the numbers that a regression is trained on.
    """

    metric: str
    answer_kind: Literal["softmax", "sigmoid", "value"] = "softmax"
    head_rate: float = 1.0
    standardization: Standardization = AS_THEY_ARE

    def __init__(self, settings: TaskSettings, labels: tuple[str, ...] = ()):
        self.settings, self.labels = settings, labels
        self.label_numbers = {label: number for number, label in enumerate(labels)}

    def prepare(self, examples: Sequence[Any], report: Report, weights: ClassWeights = None) -> None:
        """Take from the training examples what the loss needs; warnings about them go to `report`.

        `weights` are the `class_weights` of `TaskConfig`, which takes them for classification alone.

        Raises `UserError` for examples that cannot be learned.
        """

    def order(self, items: Items, batch_size: int, seed: int) -> EpochOrder:
        """The numbers of the items in each step; `batch_size`: the most items of a step."""
        return EpochOrder(len(items), batch_size, seed)

    def counts(self, batch: LabeledBatch) -> dict[str, float]:
        """The count of the only term, as the training loop asks for it (`objectives.base.Task`)."""
        return {"": self.count(batch)}

    def outputs(self, model: nn.Module, batch: LabeledBatch) -> Tensor:
        """The logits of all rows of a batch: [B, C], [B, T, C] or [B, T, 2] (`model.task_models`)."""
        return model(*batch.rows)

    def terms(self, model: nn.Module, batch: LabeledBatch) -> dict[str, Term]:
        """The only term, as the training loop asks for it (`objectives.base.Task`)."""
        return {"": self.term(self.outputs(model, batch), batch)}

    def kept_settings(self, metrics: Mapping[str, Any]) -> TaskSettings:
        """The settings of the finished model. `metrics` is `score` of the dev data; empty without any."""
        return self.settings

    def settled(self, predictions: Sequence[Any], kept: TaskSettings) -> Sequence[Prediction]:
        """The answers that a finished model with the settings `kept` gives, from those in training."""
        return list(predictions)

    def kept_lines(self, kept: TaskSettings) -> Iterator[str]:
        """A line for each of the `kept_settings` that the dev data decided."""
        for name in TaskSettings.model_fields:
            value = getattr(kept, name)
            if value is not None and value != getattr(self.settings, name):
                shown = f"{value:.4g}" if isinstance(value, float) else short(str(value), LONGEST)
                yield f"task.{name}: {shown}, kept in the model"

    @abstractmethod
    def encode(self, examples: Sequence[Any], tokenizer: Tokenizer) -> list[Item]:
        """One or more items for each example, in the examples' order.

        Raises `UserError` for an example that cannot be used, with its `where`.
        """

    def count(self, batch: LabeledBatch) -> float:
        """The number of answers in the batch, by which the loss is divided."""
        return len(batch.items)

    def answers(self, logits: Tensor, batch: LabeledBatch) -> Tensor:
        """The logits of what `count` counts: float32 [N, C], or [N, parts, C] for answers in parts."""
        return logits.float()

    @abstractmethod
    def term(self, logits: Tensor, batch: LabeledBatch) -> Term:
        """The loss of a batch with targets, summed over what `count` counts."""

    def split_logits(self, logits: Tensor, batch: LabeledBatch) -> list[Tensor]:
        """The logits of each item, without padding."""
        if logits.ndim == 2:
            return list(logits)
        return [logits_TC[: item.length] for logits_TC, item in zip(logits, batch.items, strict=True)]

    @abstractmethod
    def predict(self, example: Any, items: Items, logits: Logits) -> Prediction:
        """The answer for one example, from all of its items and their logits (fp32, on the CPU)."""

    def join(self, predictions: Sequence[Any]) -> tuple[float | None, list[Prediction]]:
        """The mean loss over all examples and their answers, for tasks whose answers depend on all examples.

        A loss of None says that it is a sum over items, by `term`; the answers stay as they are.
        """
        return None, list(predictions)

    @abstractmethod
    def is_right(self, example: Any, prediction: Any) -> bool:
        """True if the prediction for a labeled example is right (for the file of wrong cases)."""

    @abstractmethod
    def score(self, examples: Sequence[Any], predictions: Sequence[Any]) -> Mapping[str, Any]:
        """The task's metrics by name: floats, and for some tasks tables (nested dicts, lists).

        Higher is better for every float that can be a `metric`, except if its name ends in `_error`.
        """


def task_class(type: str) -> type[LabeledTask]:
    """The class of a task; `type` is a key of `tasks.registry.TASKS`."""
    return resolve_name(TASKS[type])


def build_task(settings: TaskSettings, labels: tuple[str, ...]) -> LabeledTask:
    """The task. `labels` are in the order of the head's outputs; empty if outputs have no names."""
    return task_class(settings.type)(settings, labels)


AT_ONCE = 2048
"""Examples that are tokenized together: what the library returns takes far more memory than the ids."""


def encode_texts(
    examples: Sequence[AnyExample], tokenizer: Tokenizer
) -> Iterator[tuple[AnyExample, list[list[int]]]]:
    """Each example with the ids of its texts."""
    for start in range(0, len(examples), AT_ONCE):
        some = examples[start : start + AT_ONCE]
        ids = iter(tokenizer.encode_batch([text for example in some for text in example.texts]))
        yield from ((example, [next(ids) for _ in example.texts]) for example in some)


def num_tokens(items: Items) -> int:
    """The number of tokens of all rows of all items."""
    return sum(len(row.ids) for item in items for row in item.rows)


def mean_length(items: Items) -> float:
    """The mean number of tokens of a row, over all rows of all items."""
    return num_tokens(items) / sum(len(item.rows) for item in items)


def full_lengths(items: Items) -> list[int]:
    """`Item.full_length` of each example, in order; several windows are one example."""
    return list({item.example: item.full_length for item in items}.values())


def cut_windows(sizes: Sequence[int], room: int, overlap: int) -> list[range]:
    """The windows of a text as ranges of its tokens, in order; one empty window for an empty text.

    Args:
        sizes: tokens of each of the text's units, which no window splits; at most `room`.
        room: maximum of tokens in a window.
        overlap: maximum of tokens that a window shares with the one before; fewer if units do not fit.
    """
    bounds = np.concatenate([[0], np.cumsum(sizes, dtype=np.int64)])
    windows, first = [], 0
    while True:
        end = int(np.searchsorted(bounds, bounds[first] + room, side="right")) - 1
        windows.append(range(int(bounds[first]), int(bounds[end])))
        if end == len(sizes):
            return windows
        shared = min(overlap, room - sizes[end])  # the next window must hold the unit that did not fit
        first = int(np.searchsorted(bounds, bounds[end] - shared))


def most_context(windows: Sequence[range]) -> NDArray[np.int64]:
    """int64 [tokens]: the number of the window in which each token of the text is farthest from both ends.

    This is Devlin et al.'s rule for SQuAD ("max context" in their code): each token is predicted once, with
    as much context as possible. A tie goes to the earlier window.
    """
    length = windows[-1].stop
    owner_T, context_T = np.zeros(length, np.int64), np.full(length, -1)
    for number, window in enumerate(windows):
        steps = np.arange(len(window))
        context = np.minimum(steps, steps[::-1])
        here = slice(window.start, window.stop)
        better = context > context_T[here]
        owner_T[here][better] = number
        context_T[here][better] = context[better]
    return owner_T
