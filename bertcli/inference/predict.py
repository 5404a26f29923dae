"""A task model and a stream of examples -> an answer for each, in the same order."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from bertcli.examples.examples import Example
from bertcli.inference.buffers import in_buffers
from bertcli.inference.examples import Runner
from bertcli.tasks.supervised import Prediction
from bertcli.text.tokenizer import Tokenizer


@dataclass(frozen=True, slots=True)
class Predicted:
    """An example with its answer, and how many of its tokens the model could not read."""

    example: Example
    prediction: Prediction
    dropped: int


def predict_stream(runner: Runner, tokenizer: Tokenizer, examples: Iterable[Any]) -> Iterator[Predicted]:
    """The answers in the order of `examples`; only a bounded number of examples is in memory at once.

    Raises `UserError` (while iterating) for an example that the task cannot use.
    """
    for some in in_buffers(examples, runner.batch_size):
        items = runner.task.encode(some, tokenizer)
        dropped = [0] * len(some)
        for item in items:
            dropped[item.example] += item.dropped
        yield from map(Predicted, some, runner.predict(some, items), dropped)
