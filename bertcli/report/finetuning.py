"""What a report says of one fine-tuning run besides its log: the data, and where the model is wrong."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bertcli.config.finetune import FinetuneConfig
from bertcli.files import file_hash
from bertcli.hardware import resolve_device
from bertcli.hf.locate import resolve_model
from bertcli.owned.run_layout import RunLayout
from bertcli.report.answered import AnsweredRows, answer_dev
from bertcli.report.confusion import LONGEST, Confusion, confusion
from bertcli.report.decided import Decided, decided_mistakes
from bertcli.report.labeled import LabeledFigures, labeled_figures
from bertcli.report.missing import Missing
from bertcli.report.mistakes import MOST, Mistake, mistakes_of
from bertcli.report.run_view import RunView
from bertcli.report.scatter import Scatter, scatter
from bertcli.report.seeds import SeedTable, seed_table
from bertcli.report.short import short
from bertcli.report.wishes import Wishes
from bertcli.runs.data_identity import read_run_data
from bertcli.tasks.classification import Classified

MOST_CLASSES = 40


@dataclass(frozen=True)
class ClassTable:
    """Precision, recall, F1 and count of each label or type; the worst ones, if there are many."""

    rows: Sequence[tuple[str, Mapping[str, float]]]
    num_classes: int


@dataclass(frozen=True)
class FinetuningParts:
    """None: that part is missing, or the task has none.

    Attributes:
        answered: of the dev data, by the model of `folder`.
        num_wrong: of these rows; `mistakes` has the first few.
        decided: row of a mistake -> the words that decided it; empty: nobody asked for them.
    """

    data: LabeledFigures | None
    seeds: SeedTable | None
    answered: AnsweredRows | None
    num_wrong: int
    confusion: Confusion | None
    classes: ClassTable | None
    scatter: Scatter | None
    mistakes: Sequence[Mistake]
    decided: Mapping[int, Decided]


def finetuning_parts(view: RunView, wishes: Wishes, missing: Missing) -> FinetuningParts:
    """Compute them. Raises `UserError` for a missing device."""
    config, device = view.config, resolve_device(wishes.device)
    assert isinstance(config, FinetuneConfig)
    what = "the answers on the dev data"
    folder = missing.unless(what, lambda: _model_folder(view))
    answered = data = None
    if folder is not None:
        missing.lines += _changed(view)
        answered = missing.unless(what, lambda: answer_dev(config, folder, device))
        data = missing.unless("the data", lambda: labeled_figures(config, folder, wishes.check_data))
    mistakes = [] if answered is None else mistakes_of(answered, MOST)
    decided = decided_mistakes(answered, mistakes) if answered and wishes.attributions else {}
    return FinetuningParts(
        data=data,
        seeds=seed_table(view) if view.seeds else None,
        answered=answered,
        num_wrong=0 if answered is None else len(answered.wrong),
        confusion=None if answered is None else _confusion(answered),
        classes=None if answered is None else _classes(answered.metrics),
        scatter=None if answered is None else _scatter(answered),
        mistakes=mistakes,
        decided=decided,
    )


def _model_folder(view: RunView) -> Path:
    """Of the run; while its seeds are trained, of the first that has a model. Raises `UserError`."""
    for seed in view.seeds:
        if not RunLayout(view.root).model.is_dir() and RunLayout(seed.root).model.is_dir():
            return resolve_model(seed.root)
    return resolve_model(view.root)


def _changed(view: RunView) -> list[str]:
    """The labeled files that are not what they were at the start of the run."""
    task = view.config.task if isinstance(view.config, FinetuneConfig) else None
    assert task is not None
    found = read_run_data(RunLayout(view.parts[0].root).data, {"files": dict}) or {"files": {}}
    names = [name for name in (task.train, task.dev) if name is not None and Path(name).is_file()]
    changed = [name for name in names if found["files"].get(name, "") not in ("", file_hash(Path(name)))]
    return [f"{name} has changed since the run: what follows is of the new file" for name in changed]


def _confusion(answered: AnsweredRows) -> Confusion | None:
    """Of single labels."""
    pairs = [
        (str(example.label), answer.labels[0])
        for example, answer in zip(answered.examples, answered.predictions, strict=True)
        if isinstance(answer, Classified) and not answer.multi_label
    ]
    if not pairs:
        return None
    right, given = zip(*pairs, strict=True)
    return confusion(right, given, answered.task.labels)


def _classes(metrics: Mapping[str, Any]) -> ClassTable | None:
    table = metrics.get("per_class") or metrics.get("per_type")
    if not table:
        return None
    rows = [(short(name, LONGEST), values) for name, values in table.items()]
    if len(rows) > MOST_CLASSES:
        rows = sorted((row for row in rows if row[1]["count"]), key=lambda row: row[1]["f1"])[:MOST_CLASSES]
    return ClassTable(rows, len(table))


def _scatter(answered: AnsweredRows) -> Scatter | None:
    if answered.task.settings.type != "regression":
        return None
    right = [example.label for example in answered.examples]
    return scatter(right, [answer.as_json()["value"] for answer in answered.predictions])
