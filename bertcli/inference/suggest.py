"""Rows without labels -> those to label next: the most uncertain ones, no two alike, over all kinds of texts.

The model's answers select `CANDIDATES` times as many rows as are asked for, by their uncertainty. Of these,
k-center greedy (Sener and Savarese 2018, algorithm 1) chooses by the model's own vectors, weighted by the
uncertainty: the next row is uncertain, and far from all that were chosen before.
"""

from __future__ import annotations

import json
import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any, TextIO

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from bertcli.config.task import Column, TaskSettings
from bertcli.inference.outputs import SEPARATORS, AnswerTable, beside
from bertcli.inference.predict import Predicted, Runner, predict_stream
from bertcli.model.task_models import HeadModel, pool
from bertcli.system.errors import UserError
from bertcli.system.terminal import Report, counted
from bertcli.tasks.examples import AnyExample
from bertcli.tasks.facts import facts_of
from bertcli.tasks.span_files import is_marked
from bertcli.tasks.supervised import LabeledBatch
from bertcli.tasks.table import one_spelling

CANDIDATES = 3
"""Rows that the choice is made from, for each row that is asked for."""
ALIKE = 2 / 3
"""Two texts are alike if they share at least this part of all their tokens."""


@dataclass(frozen=True, slots=True)
class Suggested:
    """A row to label, with the model's answer.

    Attributes:
        uncertainty: `tasks.shown.Prediction.uncertainty`.
        vector_D: the input of the model's last layer for this row, fp32; the mean over tokens and windows.
        tokens: the tokens that the model read, without special ones.
    """

    answer: Predicted
    uncertainty: float
    vector_D: NDArray[np.float32]
    tokens: frozenset[int]

    def as_json(self) -> dict[str, Any]:
        """The row's own columns, which stay as they are, the answer, and its uncertainty.

        A part of the answer whose name is taken, such as `label`, is named `suggested_label`.
        """
        columns = beside(self.answer.example.columns, {})
        told = self.answer.prediction.as_json() | {"uncertainty": self.uncertainty}
        return columns | {
            f"suggested_{name}" if name in columns else name: each for name, each in told.items()
        }


def suggest(
    runner: Runner,
    examples: Iterable[AnyExample],
    number: int,
    watch: Callable[[Iterable[Predicted]], Iterable[Predicted]] = iter,
) -> list[Suggested]:
    """The rows to label next, at most `number`, the most useful first: the first ten are a choice of ten.

    There are fewer if no more rows differ. A text without any token is never suggested. Memory is bounded by
    `number`, not by the rows. `watch` gives back the answers that it is given, in their order.

    Raises:
        UserError: the model's answers have no probability, or it is an ONNX file.
    """
    kept = Candidates(CANDIDATES * number)
    special = runner.tokenizer.frame.special_ids
    with _seen_vectors(runner) as (runner, vectors):
        for answer in watch(predict_stream(runner, examples)):
            own = [vectors.pop(id(item)) for item in answer.items]
            uncertainty = answer.prediction.uncertainty
            if uncertainty is None:
                raise UserError(
                    f"a {runner.task.type} model gives no probabilities, so no answer is less sure than "
                    "another; choose rows at random, or learn classes in place of numbers (classification)"
                )
            tokens = frozenset(token for item in answer.items for row in item.rows for token in row.ids)
            vector_D = torch.stack(own).mean(dim=0).numpy()
            if tokens - special:
                kept.add(Suggested(answer, uncertainty, vector_D, tokens=tokens - special))
    return choose(kept.best(), number)


@contextmanager
def _seen_vectors(runner: Runner) -> Iterator[tuple[Runner, dict[int, Tensor]]]:
    """A runner that keeps the vector [D] of each item that it answers, under the item's `id`."""
    model = runner.model
    if not isinstance(model, HeadModel):
        raise UserError(
            "bertcli suggest compares vectors inside the model, which an ONNX file does not give; name "
            "the model folder that it was exported from"
        )
    inputs: list[Tensor] = []
    vectors: dict[int, Tensor] = {}

    def see(module: nn.Module, given: tuple[Tensor, ...]) -> None:
        inputs.append(given[0])

    def keep(logits: Tensor, batch: LabeledBatch) -> None:
        runner.watch(logits, batch)
        vectors_BD = torch.cat(inputs).float()  # a text of many windows is computed in several parts
        inputs.clear()
        if vectors_BD.ndim == 3:
            vectors_BD = pool(vectors_BD, batch.rows.mask_BT, "mean")
        rows = vectors_BD.cpu().split([len(item.rows) for item in batch.items])
        vectors.update((id(item), own.mean(dim=0)) for item, own in zip(batch.items, rows, strict=True))

    hook = getattr(model, model.output).register_forward_pre_hook(see)
    try:
        yield replace(runner, watch=keep), vectors
    finally:
        hook.remove()


class Candidates:
    """The most uncertain rows of a stream, no two of them alike: of two that are, the more uncertain one.

    Texts that share two thirds of their tokens have one of their rarest ones in common (prefix filtering:
    Chaudhuri, Ganti and Kaushik 2006), so only few are compared. At most `2 * size` rows are in memory.
    """

    def __init__(self, size: int):
        self._size, self._least = size, -math.inf
        self._kept: dict[int, Suggested] = {}
        self._holders: defaultdict[int, set[int]] = defaultdict(set)
        self._seen = 0

    def add(self, row: Suggested) -> None:
        """Take a row, if it is uncertain enough."""
        if row.uncertainty <= self._least:
            return
        found = {number for token in _rarest(row.tokens) for number in self._holders.get(token, ())}
        rivals = [number for number in found if are_alike(row.tokens, self._kept[number].tokens)]
        if any(self._kept[number].uncertainty >= row.uncertainty for number in rivals):
            return
        for number in rivals:
            self._remove(number)
        self._seen += 1
        self._kept[self._seen] = row
        for token in _rarest(row.tokens):
            self._holders[token].add(self._seen)
        if len(self._kept) == 2 * self._size:
            self._trim()

    def best(self) -> list[Suggested]:
        """The rows, at most `size`, the most uncertain first; among equals the earlier first."""
        self._trim()
        return sorted(self._kept.values(), key=lambda row: -row.uncertainty)

    def _trim(self) -> None:
        order = sorted(self._kept, key=lambda number: -self._kept[number].uncertainty)
        for number in order[self._size :]:
            self._remove(number)
        if len(order) >= self._size:
            self._least = self._kept[order[self._size - 1]].uncertainty

    def _remove(self, number: int) -> None:
        for token in _rarest(self._kept.pop(number).tokens):
            self._holders[token].discard(number)
            if not self._holders[token]:
                del self._holders[token]


def are_alike(tokens: frozenset[int], others: frozenset[int]) -> bool:
    """True if both texts have `ALIKE` of all their tokens (Jaccard's index of the sets)."""
    shared = len(tokens & others)
    return shared >= ALIKE * (len(tokens) + len(others) - shared)


def _rarest(tokens: frozenset[int]) -> list[int]:
    """The tokens of which a text that is alike has at least one; vocabularies give rare ones high numbers."""
    return sorted(tokens, reverse=True)[: len(tokens) - math.ceil(ALIKE * len(tokens)) + 1]


def choose(rows: Sequence[Suggested], number: int) -> list[Suggested]:
    """`number` of the rows by weighted k-center greedy, in the order of the choice.

    The first one is `rows[0]`. Each next one has the highest product of its uncertainty and its distance from
    the nearest chosen one; vectors have the length 1.
    """
    if not rows:
        return []
    vectors_ND = np.stack([row.vector_D for row in rows])
    vectors_ND /= np.maximum(np.linalg.norm(vectors_ND, axis=1, keepdims=True), 1e-12)
    weights_N = np.array([row.uncertainty for row in rows])
    distances_N = np.full(len(rows), np.inf)
    chosen = [0]
    while len(chosen) < min(number, len(rows)):
        last_D = vectors_ND[chosen[-1]]
        distances_N = np.minimum(distances_N, np.linalg.norm(vectors_ND - last_D, axis=1))
        distances_N[chosen] = -1.0
        chosen.append(int(np.argmax(np.where(distances_N < 0, -1.0, weights_N * distances_N))))
    return [rows[place] for place in chosen]


def without_labels(
    examples: Iterable[AnyExample], settings: TaskSettings, report: Report
) -> Iterator[AnyExample]:
    """The rows with a text whose column of the label is empty, or not there, and which hold no spans.

    A label of `settings.skip_labels` says that there is none. The columns that the settings number are those
    of the first row. `report` takes the number of rows left out.

    Raises `UserError` if no row is left.
    """
    names: list[str] | None = None
    has_spans = settings.label is None and "spans" in facts_of(settings.type).formats
    marks = {"", "[]", *map(one_spelling, settings.skip_labels or ())}
    has_labels = any if settings.ticks else all  # without a mark, a cell of ticks is empty
    kept = labeled = empty = 0
    for example in examples:
        names = _label_names(example.columns, settings) if names is None else names
        if not any(text.strip() for text in example.texts):
            empty += 1
        elif (has_spans and is_marked(example.columns)) or (
            names and has_labels(_label(example.columns, name) not in marks for name in names)
        ):
            labeled += 1
        else:
            kept += 1
            yield example
    if labeled:
        where = f"column {', '.join(map(repr, names))}" if names else "their spans"
        report(f"left out: {counted(labeled, 'row')} with a label already ({where})")
    if empty:
        report(f"left out: {counted(empty, 'row')} without a text")
    if not kept:
        raise UserError("no row is left to label: give a file with texts whose label is not there, or empty")


def _label_names(columns: Mapping[str, Any], settings: TaskSettings) -> list[str]:
    """The names of the label's columns. Numbers are ignored if the row lacks a column that is read, because
    its file has another layout then, such as lines of text."""
    names = settings.columns or list(columns)

    def name(column: Column) -> str:
        if isinstance(column, str):
            return column
        return names[column] if column < len(names) else ""

    choices = settings.choices if isinstance(settings.choices, list) else [settings.choices]
    read = {name(column) for column in (*settings.text_columns, *choices) if column is not None}
    has_numbers = bool(read) and read <= columns.keys()
    found = [name(each) for each in settings.label_columns if isinstance(each, str) or has_numbers]
    return [each for each in found if each and each not in read]


def _label(columns: Mapping[str, Any], name: str) -> str:
    value = columns.get(name)
    return "" if value is None else one_spelling(str(value).strip())


def write(stream: TextIO, rows: Sequence[Suggested], suffix: str, between: str | None = None) -> None:
    """Write the rows in the format of a suffix: `.jsonl`, `.csv` or `.tsv`; "": lines for people.

    `between`: what stands between several labels in a table (`task.label_separator`).
    """
    table = AnswerTable(stream, SEPARATORS[suffix], between) if suffix in SEPARATORS else None
    for row in rows:
        example, prediction = row.answer.example, row.answer.prediction
        if table is not None:
            table.write(example.where, row.as_json(), own=example.columns.keys())
        elif suffix:
            stream.write(json.dumps(row.as_json(), ensure_ascii=False) + "\n")
        else:
            stream.write(f"{row.uncertainty:6.4f}  {prediction.readable(example)}\n")
    if table is not None:
        table.tell()
