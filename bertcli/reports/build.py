"""The report of one run or several: what it reads, what can be compared, and the file it is written to."""

import os
import shlex
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import astuple, replace
from pathlib import Path

from torch import Tensor

from bertcli.config.finetune import FinetuneConfig
from bertcli.config.schema import PretrainConfig
from bertcli.folders import mark, run_layout
from bertcli.inference.outputs import aside, check_output, writing
from bertcli.reports.chart import MARKERS
from bertcli.reports.curves import charts, series_of
from bertcli.reports.finetuning import FinetuningParts, finetuning_parts
from bertcli.reports.head import head_of, recipe_of
from bertcli.reports.page import Notes, ReportOptions, page
from bertcli.reports.pretraining import PretrainingParts, pretraining_parts
from bertcli.reports.run_view import RunView, read_run
from bertcli.reports.scores import Score, chosen_row, levels_of, metric_of, references_of
from bertcli.system.errors import UserError
from bertcli.system.files import disk_errors
from bertcli.system.terminal import number, say
from bertcli.training.metrics_log import term_key

OTHER_TEXT = "The runs hold out different text, so their losses cannot be compared."
OTHER_TOKENS = (
    "The runs cut the same text into different tokens, so the losses of a masked token cannot be compared: "
    "with fewer and rarer tokens they are larger. Compare the nats a word: the loss times the tokens of a "
    "word."
)


def comparison_note(views: Sequence[RunView]) -> str | None:
    """The reason why the losses cannot be compared, as far as the token stores show it; None: no reason."""
    known = [view.manifest for view in views if view.manifest is not None]
    if len({(each.heldout.bytes, each.heldout.words) for each in known}) > 1:
        return OTHER_TEXT
    # Ids and names of special tokens may differ where the text has the same tokens.
    tokens = {
        (*astuple(each.train), *astuple(each.heldout), round(each.unigram_entropy, 6)) for each in known
    }
    return OTHER_TOKENS if len(tokens) > 1 else None


def nats_per_word(view: RunView) -> list[Score]:
    """The loss in nats per word, as in `training.gain.Gain`; empty: there is no store, or no evaluation."""
    row = chosen_row(view)
    terms = [each.term for each in references_of(view) if each.predicts_words]
    loss = row.get(term_key(terms[0], "loss")) if row and terms else None
    if loss is None or view.manifest is None:
        return []
    return [Score("nats_per_word", "nats a word", number(loss * view.manifest.tokens_per_word))]


MOST_RUNS = 8
"""Largest number of runs side by side; readers cannot tell more apart in a chart."""


def build_report(views: Sequence[RunView], options: ReportOptions) -> str:
    """The page of these runs (`read_runs`); nothing is written. Raises `UserError` for a missing device."""
    notes, first, parts = Notes(), views[0], None
    if len(views) == 1:
        make = pretraining_parts if isinstance(first.config, PretrainConfig) else finetuning_parts
        parts = make(first, options, notes)
        if first.state.word == "finished":
            views = [replace(first, verdict=parts.verdict)]
    heads = list(map(head_of, views))
    if (note := comparison_note(views)) is not None:
        notes.lines.append(note)
        for head, view in zip(heads, views, strict=True):
            head.scores.extend(nats_per_word(view))
    series, left_out = series_of(views)
    if left_out:
        notes.lines.append(f"{left_out} more runs are not in the charts.")
    title = ", ".join(view.name for view in views)
    model = parts.model if parts else None
    parameters: list[tuple[str, str]] = []
    if model is not None:  # `parameters()` gives a shared one once
        parameters.append(("parameters", number(sum(map(Tensor.numel, model.parameters())))))
    values = {
        "heads": heads,
        "kind": first.kind,
        "fact_names": list(dict.fromkeys(name for head in heads for name, _ in head.facts)),
        "score_names": {score.key: score.name for head in heads for score in head.scores},
        "baselines": _shared_baselines([score for head in heads for score in head.scores]),
        "markers": MARKERS,
        "series": [each for each in series if each.name],
        "charts": charts(series, levels_of(views), metric_of(first)),
        "recipe": recipe_of(views),
        "parameters": parameters,
        "notes": notes.lines,
        "pretraining": parts if isinstance(parts, PretrainingParts) else None,
        "finetuning": parts if isinstance(parts, FinetuningParts) else None,
    }
    return page(f"{title}: report", "report.html.j2", values)


def read_runs(roots: Sequence[Path]) -> list[RunView]:
    """The runs of a report, which must be of one kind.

    Raises:
        UserError: a folder is not a run folder, or its files are damaged; the runs are of several kinds;
            there are too many runs.
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


def _shared_baselines(scores: Sequence[Score]) -> Mapping[str, str]:
    """Key of a score -> its baseline, if all runs with a baseline have the same one."""
    known = {(score.key, score.baseline) for score in scores if score.baseline}
    times = Counter(key for key, _ in known)
    return {key: baseline for key, baseline in known if times[key] == 1}


ELSEWHERE = "write it elsewhere: --output FILE.html"


def write_report(roots: Sequence[Path], options: ReportOptions, output: Path | None = None) -> Path:
    """Write the report of these runs; return its path.

    `output`: the path to write to; None: `report.html` in the first run folder, where only a report of
    bertcli is replaced.

    Raises:
        UserError: as `read_runs`; or the file cannot be written or is not bertcli's, which is checked before
            the work begins if possible.
    """
    views = read_runs(roots)
    if options.attributions and (len(views) > 1 or views[0].kind == "pretraining"):
        raise UserError("--attributions: explains the mistakes of one fine-tuning run; leave it out")
    path = output or run_layout.RunLayout(roots[0]).report
    if output is None:
        _check_own(path)
    else:
        check_output(output, [".html"])
    document = build_report(views, options)
    if output is None:
        with disk_errors(f"{path}: could not be written", ELSEWHERE, ELSEWHERE):
            mark.write_own(path, document)
    else:
        with writing(path), aside(path) as partial:
            partial.write_text(document, encoding="utf-8")
    return path


def write_report_if_asked(config: PretrainConfig | FinetuneConfig) -> None:
    """Write the report of a run that has just ended. A failure prints only a line: the model is saved."""
    if not config.logging.report:
        return
    root = Path(config.output_dir)
    try:
        say(f"the report is in {write_report([root], ReportOptions())}")
    except Exception as error:
        again = f"bertcli report {shlex.quote(str(root))}"
        say(f"warning: the report could not be written: {error}; the model is saved. To try again: {again}")


def _check_own(path: Path) -> None:
    if mark.read_note(path.parent, "run") is None:
        raise UserError(
            f"{path.parent}: has no .bertcli.json, so bertcli did not make this folder, or it was copied "
            f"without it; {ELSEWHERE}"
        )
    if os.path.lexists(path) and not mark.is_own_file(path):
        raise UserError(f"{path}: is not what bertcli wrote there, so it is left as it is; {ELSEWHERE}")
