"""The parts of a report on a fine-tuning run: answers on the dev data, confused labels, classes, mistakes."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn

from bertcli.config.finetune import FinetuneConfig
from bertcli.folders.locate import resolve_model
from bertcli.folders.run_layout import KeptVerdict, RunLayout
from bertcli.folders.task_folder import load_task_folder
from bertcli.inference.evaluate_task import read_cases
from bertcli.reports import chart, labeled_data, scores
from bertcli.reports.page import Notes, ReportOptions
from bertcli.reports.run_view import RunView
from bertcli.system.files import file_hash
from bertcli.system.hardware import resolve_device
from bertcli.system.terminal import percent, short
from bertcli.tasks.label_doubts import suspect_labels
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
    shown: list[str | None] = [*labels]
    if len(labels) > MOST_LABELS:
        mistakes = Counter(label for pair in wrong.elements() for label in pair)
        shown = [*sorted(labels, key=lambda label: -mistakes[label])[: MOST_LABELS - 1], None]
    own = {label: label for label in shown}
    counts = Counter((own.get(a), own.get(b)) for a, b in zip(right, given, strict=True))
    rows = []
    for a in shown:
        total = sum(counts[a, b] for b in shown)
        cells = [Cell(counts[a, b], counts[a, b] / max(1, total), a == b) for b in shown]
        rows.append((OTHERS if a is None else short(a, LONGEST), total, cells))
    return Confusion([name for name, _, _ in rows], rows, worst, num_labels=len(labels))


MOST_SUSPECTS = 30
MOST_CLASSES = 40
MOST_POINTS = 400


@dataclass(frozen=True)
class FinetuningParts:
    """The parts of the report. None: the part is missing, or the task has none.

    Attributes:
        verdict: the verdict of the run at its end, or the one it would have.
        parts: the scores of seeds or folds.
        label_name: what a label is called.
        answers: the answers of the run's model on the dev data.
        classes: precision, recall, F1 and count of each label or type; the worst ones of `num_classes`.
        mistakes: the wrong answers, or the first few of them.
        scatter: a plot of right and given values.
        reliability: a plot of probabilities and the shares of right answers.
        suspects: the first of `num_suspects` rows whose labels the out-of-fold answers doubt.
    """

    verdict: KeptVerdict | None
    data: labeled_data.LabeledFigures | None
    parts: Sequence[scores.PartScore]
    label_name: str
    answers: labeled_data.DevAnswers | None = None
    confusion: Confusion | None = None
    classes: Sequence[tuple[str, Mapping[str, float]]] = ()
    num_classes: int = 0
    scatter: chart.Plot | None = None
    reliability: chart.Plot | None = None
    mistakes: Sequence[labeled_data.WrongRow] = ()
    suspects: Sequence[Mapping[str, str]] = ()
    num_suspects: int = 0

    @property
    def model(self) -> nn.Module | None:
        """The model that answered."""
        return None if self.answers is None else self.answers.runner.model


def finetuning_parts(view: RunView, options: ReportOptions, notes: Notes) -> FinetuningParts:
    """Compute the parts of the report. Raises `UserError` for a missing device."""
    config, device = view.config, resolve_device(options.device)
    assert isinstance(config, FinetuneConfig)
    what = "the answers on the dev data"
    folder = notes.unless_missing(what, lambda: _model_folder(view))
    data = answers = None
    changed = []
    if folder is not None:
        data_file = RunLayout(view.parts[0].root).data
        found = notes.unless_missing("a look at what has changed", lambda: _changed(config, data_file))
        notes.lines += (changed := found or [])
        answers = notes.unless_missing(what, lambda: _answers(view, config, folder, device=device))
        data = notes.unless_missing(
            "the data", lambda: labeled_data.labeled_figures(config, folder, options.check_data)
        )
    label_name = task_class(config.task.type).label_name
    found = notes.unless_missing("suspect labels", lambda: _suspects(view, config)) or []
    parts = FinetuningParts(
        view.verdict,
        data,
        scores.part_scores(view),
        label_name=label_name,
        suspects=[_suspect_row(config, each) for each in found[:MOST_SUSPECTS]],
        num_suspects=len(found),
    )
    if answers is None:
        return parts
    table = answers.metrics.get("per_class") or answers.metrics.get("per_type") or {}
    # Vectors have no single output to explain.
    explain = options.attributions and answers.task.head is not None and not view.out_of_fold
    verdict = None if changed or view.several else _verdict(answers, view.state.step)
    return replace(
        parts,
        verdict=view.verdict or verdict,
        answers=answers,
        confusion=_confusion(answers),
        classes=_classes(table),
        num_classes=len(table),
        scatter=_scatter(answers),
        reliability=_reliability(answers),
        mistakes=labeled_data.wrong_rows(answers, explain),
    )


def _answers(
    view: RunView, config: FinetuneConfig, folder: Path, device: torch.device
) -> labeled_data.DevAnswers | None:
    """The answers of the run's model to the dev data, or those of the folds' models to their rows."""
    folds = [
        (part.config, part.root)
        for part in view.several
        if isinstance(part.config, FinetuneConfig) and part.config.fold
    ]
    if not folds or not view.out_of_fold:
        return labeled_data.answer_dev(config, folder, device)
    most = labeled_data.MOST_ROWS // len(folds)
    found = [labeled_data.answer_dev(own, resolve_model(root), device, most=most) for own, root in folds]
    kept = load_task_folder(folder).settings
    return labeled_data.joined_answers([each for each in found if each is not None], kept)


def _suspects(view: RunView, config: FinetuneConfig) -> list[dict[str, Any]]:
    path = RunLayout(view.root).out_of_fold
    is_able = "multi_label" in task_class(config.task.type).keys
    return suspect_labels(read_cases(path), config.task) if path.is_file() and is_able else []


def _suspect_row(config: FinetuneConfig, suspect: Mapping[str, Any]) -> dict[str, str]:
    """The texts of a suspect and its labels, short."""
    columns, path = suspect["columns"], suspect["where"].partition(", ")
    names = [name if isinstance(name, str) else list(columns)[name] for name in config.task.text_columns]
    row = {
        "text": short("  |  ".join(str(columns.get(name, "")) for name in names), labeled_data.LONGEST_TEXT)
    }
    row["where"] = short(f"{Path(path[0]).name}{path[1]}{path[2]}", LONGEST)
    for key in ("given", "suggested"):
        labels = suspect[key] if isinstance(suspect[key], list) else [suspect[key]]
        row[key] = short(", ".join(map(str, labels)) or "(none)", LONGEST)
        row[f"{key}_probability"] = percent(suspect[f"{key}_probability"])
    return row


def _model_folder(view: RunView) -> Path:
    """The run's model, or while parts are trained, that of the first finished one. Raises `UserError`."""
    for part in view.several:
        if not RunLayout(view.root).model.is_dir() and RunLayout(part.root).model.is_dir():
            return resolve_model(part.root)
    return resolve_model(view.root)


def _changed(config: FinetuneConfig, data: Path) -> list[str]:
    """A line for each labeled file that has changed since the run, whose start wrote the file `data`."""
    found = read_run_data(data, {"files": dict}) or {"files": {}}
    names = [name for name in (config.task.train, config.task.dev) if name is not None]
    present = [name for name in names if Path(name).exists()]
    changed = [name for name in present if found["files"].get(name, "") not in ("", file_hash(Path(name)))]
    return [f"{name} has changed since the run: what follows is of the new file" for name in changed]


def _verdict(answers: labeled_data.DevAnswers, step: int) -> KeptVerdict | None:
    """The verdict by the answers on the dev data; None: not all rows were answered."""
    if len(answers.examples) < answers.rows:
        return None
    found = answers.task.verdict(answers.examples, answers.metrics)
    return KeptVerdict(step, [found.line], found.baseline)


def _compared(answers: labeled_data.DevAnswers, kind: type) -> list[tuple[Any, Any]]:
    """The right and the given answer of each row, if they are single labels or numbers of this type."""
    pairs = map(answers.task.compared, answers.examples, answers.predictions)
    return [pair for pair in pairs if pair is not None and isinstance(pair[0], kind)]


def _confusion(answers: labeled_data.DevAnswers) -> Confusion | None:
    """The confusion matrix; None: the task does not give each row a single label."""
    pairs = _compared(answers, str)
    if not pairs:
        return None
    right, given = zip(*pairs, strict=True)
    return confusion(right, given, answers.task.labels)


def _classes(table: Mapping[str, Mapping[str, float]]) -> list[tuple[str, Mapping[str, float]]]:
    rows = [(short(name, LONGEST), values) for name, values in table.items()]
    if len(rows) > MOST_CLASSES:
        rows = sorted((row for row in rows if row[1]["count"]), key=lambda row: row[1]["f1"])[:MOST_CLASSES]
    return rows


def _scatter(answers: labeled_data.DevAnswers) -> chart.Plot | None:
    """A point for each row, and the line of equal values; of many rows, always the same ones are shown.

    The plot is None if answers are no numbers.
    """
    pairs = _compared(answers, float)
    if not pairs:
        return None
    points = [pairs[i] for i in np.random.default_rng(0).permutation(len(pairs))[:MOST_POINTS].tolist()]
    low, high = min(map(min, points)), max(map(max, points))
    equal = chart.Curve("equal", 0, "plain", points=[(low, low), (high, high)])
    return chart.plot(
        [equal, chart.Curve("rows", 1, "plain", points=points)], [], "right value", size=chart.Size(440, 360)
    )


def _reliability(answers: labeled_data.DevAnswers) -> chart.Plot | None:
    """A point for each bin of probabilities; None if answers have no probability."""
    curves = [chart.Curve("equal", 2, "plain", points=[(0.0, 0.0), (1.0, 1.0)])]
    found = answers.task.reliability(answers.examples, answers.predictions)
    for number, (name, bins) in enumerate(found.items()):
        points = [(each.probability, each.share) for each in bins]
        curves.append(chart.Curve(name, number, "light" if number else "strong", points=points))
    return chart.plot(curves, [], "probability", size=chart.Size(440, 360)) if found else None
