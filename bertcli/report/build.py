"""Run folders -> the HTML of their report: of one run all that is known, of several a comparison."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from bertcli.config.schema import PretrainConfig
from bertcli.errors import UserError
from bertcli.report.chart import MARKERS
from bertcli.report.curves import AXES, charts, series_of
from bertcli.report.finetuning import finetuning_parts
from bertcli.report.missing import Missing
from bertcli.report.page import page
from bertcli.report.pretraining import pretraining_parts
from bertcli.report.recipe import recipe_of
from bertcli.report.references import levels_of, manifest_of
from bertcli.report.run_view import RunView, read_run
from bertcli.report.runs_head import head_of
from bertcli.report.scores import metric_of
from bertcli.report.wishes import Wishes

MOST_RUNS = 8
"""Beside each other; more cannot be told apart in a chart."""


def build_report(views: Sequence[RunView], wishes: Wishes) -> str:
    """The page of these runs (`read_runs`). Nothing is written. Raises `UserError` for a missing device."""
    series, left_out = series_of(views)
    missing = Missing()
    if left_out:
        missing.lines.append(f"{left_out} more runs are not in the charts")
    if len({_vocabulary(view) for view in views}) > 1:
        missing.lines.append(
            "the vocabularies differ, so losses of words cannot be compared: a larger vocabulary has a "
            "larger loss"
        )
    heads = [head_of(view) for view in views]
    parts: dict[str, Any] = {"pretraining": None, "finetuning": None}
    if len(views) == 1:
        kind = "pretraining" if views[0].kind == "pretraining" else "finetuning"
        make = pretraining_parts if kind == "pretraining" else finetuning_parts
        parts[kind] = make(views[0], wishes, missing)
    keys = {score.key: score.name for head in heads for score in head.scores}
    metric = "" if isinstance(views[0].config, PretrainConfig) else metric_of(views[0].config)
    title = ", ".join(head.name for head in heads)
    values = {
        "heads": heads,
        "kind": views[0].kind,
        "score_names": keys,
        "axes": AXES,
        "markers": MARKERS,
        "series": [each for each in series if each.name],
        "charts": charts(series, levels_of(views), metric),
        "recipe": recipe_of(views),
        "missing": missing.lines,
        **parts,
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


def _vocabulary(view: RunView) -> str:
    manifest = manifest_of(view.config) if isinstance(view.config, PretrainConfig) else None
    return "" if manifest is None else manifest.tokenizer_hash
