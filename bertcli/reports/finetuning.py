"""The parts of a report on a fine-tuning run: answers on the dev data, confused labels, classes, mistakes."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from bertcli.config.finetune import FinetuneConfig
from bertcli.folders.locate import resolve_model
from bertcli.folders.run_layout import KeptVerdict, RunLayout
from bertcli.model.task_models import TaskModel
from bertcli.reports.chart import Curve, Plot, Size, plot
from bertcli.reports.labeled_data import (
    DevAnswers,
    LabeledFigures,
    WrongRow,
    answer_dev,
    labeled_figures,
    wrong_rows,
)
from bertcli.reports.page import Notes, ReportOptions
from bertcli.reports.run_view import RunView
from bertcli.reports.scores import SeedTable, seed_table
from bertcli.system.files import file_hash
from bertcli.system.hardware import resolve_device
from bertcli.system.terminal import short
from bertcli.tasks.supervised import task_class
from bertcli.training.identity import read_run_data

MOST_LABELS = 12
"""Largest number of rows and columns of a matrix that can still be read."""
MOST_CONFUSIONS = 20
LONGEST = 40
"""Largest number of characters of a label."""
OTHERS = "all others"


@dataclass(frozen=True)
class Cell:
    """The number of times that one label was given for another. `share`: in the rows with the right label."""

    count: int
    share: float
    right: bool

    @property
    def level(self) -> int:
        """The shade of the share, 1 to 9; 0 only for a count of 0."""
        return 0 if not self.count else max(1, min(9, round(9 * self.share)))


@dataclass(frozen=True)
class Confusion:
    """A matrix with a row for each right label and a column for each given one.

    Attributes:
        labels: labels of rows and columns; the last is `OTHERS` if labels were put together.
        worst: the most frequent mistakes among all labels: right label, given label, count.
        num_labels: the number of all labels.
    """

    labels: Sequence[str]
    rows: Sequence[tuple[str, int, Sequence[Cell]]]
    worst: Sequence[tuple[str, str, int]]
    num_labels: int


def confusion(right: Sequence[str], given: Sequence[str], labels: Sequence[str]) -> Confusion:
    """The matrix of `labels` in their order; of many labels, those with the most mistakes, worst first."""
    wrong = Counter(pair for pair in zip(right, given, strict=True) if pair[0] != pair[1])
    worst = [
        (short(a, LONGEST), short(b, LONGEST), count) for (a, b), count in wrong.most_common(MOST_CONFUSIONS)
    ]
    shown, rest = list(labels), False
    if len(labels) > MOST_LABELS:
        mistakes = Counter[str]()
        for (a, b), count in wrong.items():
            mistakes[a] += count
            mistakes[b] += count
        shown = sorted(labels, key=lambda label: -mistakes[label])[: MOST_LABELS - 1]
        rest = True
    numbers = {label: number for number, label in enumerate(shown)}
    size = len(shown) + rest
    counts = [[0] * size for _ in range(size)]
    for a, b in zip(right, given, strict=True):
        counts[numbers.get(a, size - 1)][numbers.get(b, size - 1)] += 1
    names = [*(short(label, LONGEST) for label in shown), *([OTHERS] if rest else [])]
    rows = []
    for i, name in enumerate(names):
        total = sum(counts[i])
        cells = [Cell(count, count / max(1, total), i == j) for j, count in enumerate(counts[i])]
        rows.append((name, total, cells))
    return Confusion(names, rows, worst, num_labels=len(labels))


MOST_CLASSES = 40
MOST_POINTS = 400


@dataclass(frozen=True)
class ClassTable:
    """Precision, recall, F1 and count of each label or type; if there are many, only the worst ones."""

    rows: Sequence[tuple[str, Mapping[str, float]]]
    num_classes: int


@dataclass(frozen=True)
class FinetuningParts:
    """The parts of the report. None: the part is missing, or the task has none.

    Attributes:
        verdict: the verdict of the run at its end, or the one it would have.
        label_name: what a label is called.
        answers: the answers of the run's model on the dev data.
        num_wrong: the number of wrong answers; `mistakes` has the first few.
        scatter: a plot of right and given values.
    """

    verdict: KeptVerdict | None
    data: LabeledFigures | None
    seeds: SeedTable | None
    label_name: str
    answers: DevAnswers | None = None
    num_wrong: int = 0
    confusion: Confusion | None = None
    classes: ClassTable | None = None
    scatter: Plot | None = None
    mistakes: Sequence[WrongRow] = ()

    @property
    def model(self) -> TaskModel | None:
        """The model that answered."""
        return None if self.answers is None else self.answers.loaded.model


def finetuning_parts(view: RunView, options: ReportOptions, notes: Notes) -> FinetuningParts:
    """Compute the parts of the report. Raises `UserError` for a missing device."""
    config, device = view.config, resolve_device(options.device)
    assert isinstance(config, FinetuneConfig)
    what = "the answers on the dev data"
    folder = notes.unless_missing(what, lambda: _model_folder(view))
    data = answers = None
    changed = []
    if folder is not None:
        changed = notes.unless_missing("a look at what has changed", lambda: _changed(view)) or []
        notes.lines += changed
        answers = notes.unless_missing(what, lambda: answer_dev(config, folder, device))
        data = notes.unless_missing("the data", lambda: labeled_figures(config, folder, options.check_data))
    seeds = seed_table(view) if view.seeds else None
    label_name = task_class(config.task.type).label_name
    if answers is None:
        return FinetuningParts(view.verdict, data, seeds, label_name=label_name)
    explain = (
        options.attributions and answers.task.head is not None
    )  # vectors have no single output to explain
    return FinetuningParts(
        view.verdict if view.verdict or changed or view.seeds else _verdict(answers, view.state.step),
        data,
        seeds,
        label_name=label_name,
        answers=answers,
        num_wrong=len(answers.wrong),
        confusion=_confusion(answers),
        classes=_classes(answers.metrics),
        scatter=_scatter(answers),
        mistakes=wrong_rows(answers, explain),
    )


def _model_folder(view: RunView) -> Path:
    """The run's model, or while seeds are trained, that of the first finished one. Raises `UserError`."""
    for seed in view.seeds:
        if not RunLayout(view.root).model.is_dir() and RunLayout(seed.root).model.is_dir():
            return resolve_model(seed.root)
    return resolve_model(view.root)


def _changed(view: RunView) -> list[str]:
    """A line for each labeled file that has changed since the start of the run."""
    task = view.config.task if isinstance(view.config, FinetuneConfig) else None
    assert task is not None
    found = read_run_data(RunLayout(view.parts[0].root).data, {"files": dict}) or {"files": {}}
    names = [name for name in (task.train, task.dev) if name is not None and Path(name).is_file()]
    changed = [name for name in names if found["files"].get(name, "") not in ("", file_hash(Path(name)))]
    return [f"{name} has changed since the run: what follows is of the new file" for name in changed]


def _verdict(answers: DevAnswers, step: int) -> KeptVerdict | None:
    """The verdict by the answers on the dev data; None: not all rows were answered."""
    if len(answers.examples) < answers.rows:
        return None
    found = answers.task.verdict(answers.examples, answers.metrics)
    return KeptVerdict(step, [found.line], found.baseline)


def _compared(answers: DevAnswers, kind: type) -> list[tuple[Any, Any]]:
    """The right and the given answer of each row, if they are single labels or numbers of this type."""
    pairs = map(answers.task.compared, answers.examples, answers.predictions)
    return [pair for pair in pairs if pair is not None and isinstance(pair[0], kind)]


def _confusion(answers: DevAnswers) -> Confusion | None:
    """The confusion matrix; None: the task does not give each row a single label."""
    pairs = _compared(answers, str)
    if not pairs:
        return None
    right, given = zip(*pairs, strict=True)
    return confusion(right, given, answers.task.labels)


def _classes(metrics: Mapping[str, Any]) -> ClassTable | None:
    table = metrics.get("per_class") or metrics.get("per_type")
    if not table:
        return None
    rows = [(short(name, LONGEST), values) for name, values in table.items()]
    if len(rows) > MOST_CLASSES:
        rows = sorted((row for row in rows if row[1]["count"]), key=lambda row: row[1]["f1"])[:MOST_CLASSES]
    return ClassTable(rows, len(table))


def _scatter(answers: DevAnswers) -> Plot | None:
    """A point for each row, and the line of equal values; of many rows, always the same ones are shown.

    The plot is None if answers are no numbers.
    """
    pairs = _compared(answers, float)
    if not pairs:
        return None
    points = [pairs[i] for i in np.random.default_rng(0).permutation(len(pairs))[:MOST_POINTS].tolist()]
    low, high = min(map(min, points)), max(map(max, points))
    equal = Curve("equal", 0, "plain", points=[(low, low), (high, high)])
    return plot([equal, Curve("rows", 1, "plain", points=points)], [], "right value", size=Size(440, 360))
