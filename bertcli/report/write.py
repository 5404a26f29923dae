"""The report's file: in the run folder, or where the user says."""

from __future__ import annotations

import os
import shlex
from collections.abc import Sequence
from pathlib import Path

from bertcli.config.finetune import FinetuneConfig
from bertcli.config.schema import PretrainConfig
from bertcli.errors import UserError
from bertcli.files import disk_errors
from bertcli.inference.outputs import aside, check_output, writing
from bertcli.owned.mark import is_own_file, read_note, write_own
from bertcli.owned.run_layout import RunLayout
from bertcli.report.build import build_report, read_runs
from bertcli.report.options import ReportOptions
from bertcli.terminal import say

ELSEWHERE = "write it elsewhere: --output FILE.html"


def write_report(roots: Sequence[Path], options: ReportOptions, output: Path | None = None) -> Path:
    """Write the report of these runs; returns its path.

    `output`: None: `report.html` in the first run folder, where only a report of bertcli is replaced.

    Raises:
        UserError: as `read_runs`; the file cannot be written, or is not bertcli's. Before the work begins,
            where that is known.
    """
    views = read_runs(roots)
    if options.attributions and (len(views) > 1 or views[0].kind == "pretraining"):
        raise UserError("--attributions: explains the mistakes of one fine-tuning run; leave it out")
    path = output or RunLayout(roots[0]).report
    if output is None:
        _check_own(path)
    else:
        check_output(output, [".html"])
    document = build_report(views, options)
    if output is None:
        with disk_errors(f"{path}: could not be written", ELSEWHERE, ELSEWHERE):
            write_own(path, document)
    else:
        with writing(path), aside(path) as partial:
            partial.write_text(document, encoding="utf-8")
    return path


def write_report_if_asked(config: PretrainConfig | FinetuneConfig) -> None:
    """Write the report of a run that has just ended; a failure is one line, because the model is saved."""
    if not config.logging.report:
        return
    root = Path(config.output_dir)
    try:
        say(f"the report is in {write_report([root], ReportOptions())}")
    except Exception as error:
        again = f"bertcli report {shlex.quote(str(root))}"
        say(f"warning: the report could not be written: {error}; the model is saved. To try again: {again}")


def _check_own(path: Path) -> None:
    if read_note(path.parent, "run") is None:
        raise UserError(
            f"{path.parent}: has no .bertcli.json, so bertcli did not make this folder, or it was copied "
            f"without it; {ELSEWHERE}"
        )
    if os.path.lexists(path) and not is_own_file(path):
        raise UserError(f"{path}: is not what bertcli wrote there, so it is left as it is; {ELSEWHERE}")
