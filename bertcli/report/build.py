"""Run folders -> the HTML of their report: of one run all that is known, of several a comparison."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from torch import nn

from bertcli.config.schema import PretrainConfig
from bertcli.errors import UserError
from bertcli.report.chart import MARKERS
from bertcli.report.comparison import comparison_note, nats_per_word
from bertcli.report.corpus import Facts
from bertcli.report.curves import charts, series_of
from bertcli.report.finetuning import FinetuningParts, finetuning_parts
from bertcli.report.formatting import number
from bertcli.report.head import head_of
from bertcli.report.options import Notes, ReportOptions
from bertcli.report.page import page
from bertcli.report.pretraining import PretrainingParts, pretraining_parts
from bertcli.report.recipe import recipe_of
from bertcli.report.references import levels_of
from bertcli.report.run_view import RunView, read_run
from bertcli.report.scores import Score, metric_of

MOST_RUNS = 8
"""Beside each other; more cannot be told apart in a chart."""


def build_report(views: Sequence[RunView], options: ReportOptions) -> str:
    """The page of these runs (`read_runs`). Nothing is written. Raises `UserError` for a missing device."""
    notes, first = Notes(), views[0]
    parts = _parts(first, options, notes) if len(views) == 1 else None
    if parts is not None and first.state.word == "finished":
        views = [replace(first, verdict=parts.verdict)]
    heads = [head_of(view) for view in views]
    if (note := comparison_note(views)) is not None:
        notes.lines.append(note)
        measured = [nats_per_word(view) for view in views]
        heads = [
            head if score is None else replace(head, scores=[*head.scores, score])
            for head, score in zip(heads, measured, strict=True)
        ]
    series, left_out = series_of(views)
    if left_out:
        notes.lines.append(f"{left_out} more runs are not in the charts.")
    metric = "" if isinstance(first.config, PretrainConfig) else metric_of(first.config)
    title = ", ".join(head.name for head in heads)
    values = {
        "heads": heads,
        "kind": first.kind,
        "fact_names": list(dict.fromkeys(name for head in heads for name, _ in head.facts)),
        "score_names": {score.key: score.name for head in heads for score in head.scores},
        "baselines": _shared_baselines([score for head in heads for score in head.scores]),
        "markers": MARKERS,
        "series": [each for each in series if each.name],
        "charts": charts(series, levels_of(views), metric),
        "recipe": recipe_of(views),
        "parameters": [] if parts is None else _num_parameters(parts.model),
        "notes": notes.lines,
        "pretraining": parts if isinstance(parts, PretrainingParts) else None,
        "finetuning": parts if isinstance(parts, FinetuningParts) else None,
    }
    return page(f"{title}: report", "report.html.j2", values)


def read_runs(roots: Sequence[Path]) -> list[RunView]:
    """The runs of a report, which are of one kind.

    Raises:
        UserError: a folder is not that of a run, or its files are damaged; runs of unlike kinds; too many.
    """
    if len(roots) > MOST_RUNS:
        raise UserError(f"{len(roots)} runs: a report compares at most {MOST_RUNS}; give fewer")
    if len({root.resolve() for root in roots}) < len(roots):
        raise UserError("a run is given twice; name each folder once")
    views = [read_run(root) for root in roots]
    other = next((view for view in views if view.kind != views[0].kind), None)
    if other is not None:
        raise UserError(
            f"{views[0].root} is a run of {views[0].kind}, {other.root} one of {other.kind}: their scores "
            "have nothing in common. Make a report of each"
        )
    names = [view.name for view in views]
    return [replace(view, name=str(view.root)) if names.count(view.name) > 1 else view for view in views]


def _parts(view: RunView, options: ReportOptions, notes: Notes) -> PretrainingParts | FinetuningParts:
    make = pretraining_parts if isinstance(view.config, PretrainConfig) else finetuning_parts
    return make(view, options, notes)


def _shared_baselines(scores: Sequence[Score]) -> Mapping[str, str]:
    """Key of a score -> its baseline, where the runs that have one do not differ in it."""
    known = {(score.key, score.baseline) for score in scores if score.baseline}
    times = Counter(key for key, _ in known)
    return {key: baseline for key, baseline in known if times[key] == 1}


def _num_parameters(model: nn.Module | None) -> Facts:
    """All of them; a shared one counts once."""
    if model is None:
        return []
    return [("parameters", number(sum(parameter.numel() for parameter in model.parameters())))]
