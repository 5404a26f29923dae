"""A task of another shape, as whoever adds one writes it: the order of three sentences.

Its files have the columns first, second and third, and a label such as `2 0 1`: the first sentence is the
last one of the story. The six orders are the labels of a head that reads a row.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import permutations
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from bertcli.config.task import TaskSettings
from bertcli.objectives.base import Term
from bertcli.tasks.columns import Recognized, Sample
from bertcli.tasks.examples import Example
from bertcli.tasks.row_words import Part, ReadRow, read_parts, text_places
from bertcli.tasks.shown import Prediction
from bertcli.tasks.supervised import Item, LabeledBatch, LabeledTask, encode_texts
from bertcli.tasks.table import BadRow, Row, Table, each
from bertcli.tasks.verdict import Verdict, share_verdict
from bertcli.tokenizer.tokenizer import Tokenizer

COLUMNS = ("first", "second", "third")
ORDERS = tuple(" ".join(map(str, order)) for order in permutations(range(3)))


@dataclass(frozen=True, slots=True)
class OrderExample(Example):
    """Three sentences, and the place of each in the story (None: unlabeled)."""

    label: str | None

    @property
    def names(self) -> Sequence[str]:
        return () if self.label is None else (self.label,)


@dataclass(frozen=True)
class Order(Prediction):
    """The likeliest order, and its probability."""

    order: str
    probability: float


def order_examples(table: Table) -> Iterator[OrderExample | BadRow]:
    columns = [table.column(column, "task.text") for column in table.file.settings.text_columns]
    label = table.label()

    def example(row: Row) -> OrderExample:
        order = None if label is None else row.text(label)
        if order not in (None, *ORDERS):
            raise BadRow(f"{row.where}: {order!r} is no order; expected one such as 2 0 1")
        return OrderExample(row.where, row.values, tuple(map(row.text, columns)), order)

    return each(table.rows, example)


class Ordering(LabeledTask):
    """A row of the first sentence beside the two others, and a softmax over the six orders."""

    type = "ordering"
    head = "sequences"
    metric = "accuracy"
    pipeline_tag = "text-classification"
    takes_pairs = False
    names_outputs = True
    table_examples = staticmethod(order_examples)

    @staticmethod
    def recognize(sample: Sample) -> Recognized | None:
        if {*COLUMNS, "label"} != {column.name for column in sample.columns}:
            return None
        return Recognized({"type": "ordering", "text": list(COLUMNS), "label": "label"})

    @classmethod
    def check_settings(cls, settings: TaskSettings) -> None:
        if len(settings.text_columns) != 3:
            raise ValueError(f"text: three columns, a sentence in each ({cls.type})")

    @classmethod
    def example(cls, texts: Sequence[str], where: str, settings: TaskSettings) -> OrderExample:
        return OrderExample(where, dict(zip(COLUMNS, texts, strict=True)), tuple(texts), None)

    @staticmethod
    def label_set(examples: Iterable[OrderExample], settings: TaskSettings) -> tuple[str, ...]:
        return ORDERS

    def encode(self, examples: Sequence[OrderExample], tokenizer: Tokenizer) -> list[Item]:
        items = []
        for number, (example, (a, b, c)) in enumerate(encode_texts(examples, tokenizer)):
            row = tokenizer.frame.fit(a, [*b, *c], self.settings.max_length)
            full = len(a) + len(b) + len(c) + tokenizer.frame.cost(pair=True)
            target = None if example.label is None else self.labels.index(example.label)
            items.append(Item(number, (row,), target, dropped=full - row.length, full_length=full))
        return items

    def term(self, logits: Tensor, batch: LabeledBatch) -> Term:
        targets_B = torch.tensor([item.target for item in batch.items], device=logits.device)
        return Term(F.cross_entropy(self.answers(logits, batch), targets_B, reduction="sum"))

    def predict(self, example: OrderExample, items: Sequence[Item], logits: Sequence[Tensor]) -> Order:
        best = logits[0].softmax(dim=-1).max(dim=-1)
        return Order(self.labels[int(best.indices)], float(best.values))

    def is_right(self, example: OrderExample, prediction: Order) -> bool:
        return prediction.order == example.label

    def score(self, examples: Sequence[OrderExample], predictions: Sequence[Order]) -> Mapping[str, Any]:
        right = [self.is_right(*pair) for pair in zip(examples, predictions, strict=True)]
        return {"accuracy": sum(right) / len(right)}

    def verdict(self, examples: Sequence[OrderExample], metrics: Mapping[str, Any]) -> Verdict:
        share, blind = 1 / len(ORDERS), "any order"
        return share_verdict(
            "accuracy", "accuracy", metrics["accuracy"], share=share, blind=blind, rows=len(examples)
        )

    def read(self, example: OrderExample, item: Item, number: int, tokenizer: Tokenizer) -> ReadRow:
        row = item.rows[number]
        first, others = text_places(row, tokenizer.frame)
        middle = others.start + len(tokenizer.encode(example.texts[1]))
        places = (first, range(others.start, middle), range(middle, others.stop))
        parts = [
            Part(text, tokens, segment)
            for text, tokens, segment in zip(example.texts, places, (0, 1, 1), strict=True)
        ]
        return read_parts(row, parts, tokenizer)
