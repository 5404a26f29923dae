"""A stream of examples -> their predictions, in batches of similar length, within bounded memory."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import groupby, islice
from typing import Any, TypeVar

import torch
from torch import Tensor, nn

from bertcli.batches.batch import batch_of
from bertcli.batches.share import in_parts
from bertcli.config.task import TaskSettings
from bertcli.folders.lengths import LongRows
from bertcli.folders.task_folder import LoadedTask
from bertcli.inference.onnx_model import is_quantized
from bertcli.system.errors import UserError
from bertcli.system.hardware import Precision, autocast
from bertcli.tasks.examples import Example
from bertcli.tasks.shown import Prediction
from bertcli.tasks.supervised import Item, LabeledBatch, LabeledTask, build_task
from bertcli.tokenizer.frame import Row
from bertcli.tokenizer.tokenizer import Tokenizer

BUFFERED_BATCHES = 64
"""Batches that are read ahead: enough to form batches whose rows have nearly the same length."""
BUFFERED_CHARACTERS = 4_000_000
"""Limit of the text that is read ahead, so that long texts take no more memory than short ones."""

Some = TypeVar("Some", bound=Example)


def in_buffers(examples: Iterable[Some], batch_size: int) -> Iterator[list[Some]]:
    """The examples in lists that fill `BUFFERED_BATCHES` batches or hold `BUFFERED_CHARACTERS`.

    The examples before a `UserError` that `examples` raises come first.
    """
    buffer: list[Some] = []
    characters = 0
    try:
        for example in examples:
            buffer.append(example)
            characters += sum(map(len, example.texts))
            if len(buffer) == BUFFERED_BATCHES * batch_size or characters >= BUFFERED_CHARACTERS:
                yield buffer
                buffer, characters = [], 0
    except UserError:
        if buffer:
            yield buffer
        raise
    if buffer:
        yield buffer


def default_batch_size(device: torch.device) -> int:
    """The fastest number of rows in a batch: on a CPU small enough for its caches."""
    return 16 if device.type == "cpu" else 128


SORTED_BATCHES = 16
"""Batches that are read ahead: enough for rows of similar length, and few enough for any memory."""


Input = TypeVar("Input")
Encoded = TypeVar("Encoded", Row, Item)
"""What is put into batches by its `length` in tokens."""
Result = TypeVar("Result")


def only_numbers(outputs: Tensor) -> Tensor:
    """The outputs of a model, unchanged. Raises `UserError` if one is NaN or infinite."""
    if outputs.isfinite().all():
        return outputs
    raise UserError(
        "the model's answer is NaN or infinite: its weights are too large, so its sums overflow. The "
        "training diverged, or a file is damaged: give an earlier checkpoint, or copy the model again"
    )


def in_similar_lengths(
    inputs: Iterable[Input],
    batch_size: int,
    encode: Callable[[list[Input]], list[Row]],
    compute: Callable[[list[Row]], list[Result]],
    count: Callable[[Iterable[int]], None] = lambda lengths: None,
) -> Iterator[tuple[Input, Result]]:
    """Each of `inputs`, in order, with its result, computed on batches of rows of similar length.

    At most `SORTED_BATCHES` batches are in memory at once. `count` is called with the lengths of the rows.
    """
    stream = iter(inputs)
    while buffer := list(islice(stream, batch_size * SORTED_BATCHES)):
        rows = encode(buffer)
        count(row.length for row in rows)
        yield from zip(buffer, by_length(rows, batch_size, compute), strict=True)


def by_length(
    rows: list[Encoded],
    batch_size: int,
    compute: Callable[[list[Encoded]], list[Result]],
    size: Callable[[Encoded], int] = lambda row: 1,
) -> list[Result]:
    """The results of `rows` in their order, computed on batches of rows of similar length.

    `size`: the number of rows in an item, which stay together.
    """
    order = sorted(range(len(rows)), key=lambda i: rows[i].length)
    results: dict[int, Result] = {}
    for chosen in in_parts(order, batch_size, rows=lambda i: size(rows[i])):
        results.update(zip(chosen, compute([rows[i] for i in chosen]), strict=True))
    return [results[i] for i in range(len(rows))]


@dataclass(frozen=True)
class Runner:
    """A model that answers a task's items, batch by batch, without dropout.

    Attributes:
        batch_size: the number of rows of similar length in a batch; the rows of an item stay together.
        watch: called with the logits of each batch before they are split, for the loss.
        in_training: whether training goes on afterward, which reports itself that it diverged. FSDP cannot
            train parameters that it allocated in torch's inference mode, which is faster than
            `torch.no_grad`.
    """

    model: nn.Module
    task: LabeledTask
    tokenizer: Tokenizer
    device: torch.device
    precision: Precision
    batch_size: int
    watch: Callable[[Tensor, LabeledBatch], None] = lambda logits, batch: None
    in_training: bool = False

    def reading(self, settings: TaskSettings, long_rows: LongRows, batch_size: int | None = None) -> Runner:
        """The runner for `settings` that are adapted to a file; `long_rows` counts the rows that it reads."""
        return replace(
            self,
            task=build_task(settings, self.task.labels),
            batch_size=batch_size or self.batch_size,
            watch=lambda logits, batch: long_rows.count(item.length for item in batch.items),
        )

    def logits(self, items: Sequence[Item]) -> list[Tensor]:
        """The logits of each item, fp32 on the CPU. The model must be in evaluation mode."""
        with torch.no_grad() if self.in_training else torch.inference_mode():
            return by_length(list(items), self.batch_size, self._compute, size=lambda item: len(item.rows))

    def predict(self, examples: Sequence[Any], items: Sequence[Item]) -> list[Prediction]:
        """The answer for each example; `items` are what `LabeledTask.encode` returned for them."""
        answered = zip(items, self.logits(items), strict=True)
        predictions = []
        for number, group in groupby(answered, key=lambda pair: pair[0].example):
            own, logits = zip(*group, strict=True)
            predictions.append(self.task.predict(examples[number], own, logits))
        assert len(predictions) == len(examples)
        return predictions

    def _compute(self, items: list[Item]) -> list[Tensor]:
        batch = LabeledBatch(tuple(items), self.tokenizer.pad_id, self.device)
        rows = [row for item in items for row in item.rows]
        parts = [rows[start : start + self.batch_size] for start in range(0, len(rows), self.batch_size)]
        with autocast(self.precision, self.device):  # several parts: an item of more rows than a batch
            logits = torch.cat([self.model(*batch_of(part, batch.pad_id, self.device)) for part in parts])
        self.watch(logits, batch)
        logits = logits.float().cpu()
        return self.task.split_logits(logits if self.in_training else only_numbers(logits), batch)


def runner_of(
    loaded: LoadedTask,
    device: torch.device,
    settings: TaskSettings | None = None,
    batch_size: int | None = None,
) -> Runner:
    """The runner of a task model in fp32. None: the model's own settings; the device's usual batch size."""
    return Runner(
        model=loaded.model.to(device).eval(),
        task=build_task((settings or loaded.settings).closed, loaded.labels),
        tokenizer=loaded.tokenizer,
        device=device,
        precision="fp32",
        batch_size=batch_size or default_batch_size(device),
    )


@dataclass(frozen=True, slots=True)
class Predicted:
    """An example with its answer, and the items that the model read for it."""

    example: Example
    prediction: Prediction
    items: Sequence[Item]

    @property
    def dropped(self) -> int:
        """How many of its tokens the model could not read."""
        return sum(item.dropped for item in self.items)


def predict_stream(runner: Runner, examples: Iterable[Any]) -> Iterator[Predicted]:
    """The answers in the order of `examples`; only a bounded number of examples is in memory at once.

    Raises `UserError` (while iterating) for an example that the task cannot use.
    """
    for given in in_buffers(examples, runner.batch_size):
        some = list(runner.task.at_words(given, runner.task.settings, runner.tokenizer))
        items = runner.task.encode(some, runner.tokenizer)
        own = [list(group) for _, group in groupby(items, key=lambda item: item.example)]
        yield from map(Predicted, some, runner.predict(some, items), own)


@dataclass(frozen=True, slots=True)
class AsRead:
    """A text, or a row of texts, as the model reads it.

    Attributes:
        content: the rows, with what the answer needs beside them.
        tokens: the tokens of all rows.
        dropped: the tokens that are in no row.
    """

    content: Any
    tokens: int
    dropped: int = 0


class Answers(ABC):
    """One kind of answer of one model. `together` is false if an answer depends on its batch."""

    together: bool = True

    @abstractmethod
    def encode(self, question: Any) -> AsRead:
        """The rows of one question. Raises `UserError` for one that the model cannot read."""

    @abstractmethod
    def compute(self, several: Sequence[AsRead]) -> list[Any]:
        """The answer to each question, in order. Raises `UserError` if the model gives no numbers."""

    def in_parts(self, question: AsRead, tokens: int) -> Iterator[list[Any]]:
        """The answer to a long question, computed in parts of about so many tokens: an empty list after each
        part but the last, then what `compute` gives. Raises as `compute`."""
        yield self.compute([question])


class Predictions(Answers):
    """Examples of a task -> `inference.predict.Predicted`."""

    def __init__(self, runner: Runner) -> None:
        self.runner, self.together = runner, not is_quantized(runner.model)

    def encode(self, question: Example) -> AsRead:
        task, tokenizer = self.runner.task, self.runner.tokenizer
        (example,) = task.at_words([question], task.settings, tokenizer)
        items = task.encode([example], tokenizer)
        tokens = sum(row.length for item in items for row in item.rows)
        return AsRead((example, items), tokens, sum(item.dropped for item in items))

    def compute(self, several: Sequence[AsRead]) -> list[Predicted]:
        examples = [each.content[0] for each in several]
        items = [replace(item, example=n) for n, each in enumerate(several) for item in each.content[1]]
        predictions = self.runner.predict(examples, items)
        own = [each.content[1] for each in several]
        return [Predicted(*each) for each in zip(examples, predictions, own, strict=True)]

    def in_parts(self, question: AsRead, tokens: int) -> Iterator[list[Predicted]]:
        example, items = question.content
        logits: list[Tensor] = []
        for part in in_parts(items, tokens, rows=lambda item: sum(row.length for row in item.rows)):
            if logits:
                yield []
            logits += self.runner.logits(part)
        yield [Predicted(example, self.runner.task.predict(example, items, logits), items)]
