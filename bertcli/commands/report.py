"""`bertcli report RUN...`: a run folder as one HTML page, or several runs beside each other."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from bertcli.commands.options import Device


def report(
    runs: Annotated[
        list[Path], typer.Argument(metavar="RUN...", help="The folder of a run; several of one kind.")
    ],
    output: Annotated[
        Path | None,
        typer.Option(metavar="FILE.html", help="Default: report.html in the (first) run folder."),
    ] = None,
    check_data: Annotated[
        bool,
        typer.Option(
            "--check-data", help="Read a corpus or labeled files of more than 10 MB again for what to mend."
        ),
    ] = False,
    attributions: Annotated[
        bool,
        typer.Option("--attributions", help="Show the words that decided the first 20 mistakes."),
    ] = False,
    device: Device = "auto",
) -> None:
    """Make one HTML page of a run: its scores and what they mean, curves, data, recipe, and examples.

    Of a pretrained model: held-out sentences with a masked word. Of a fine-tuned one: its answers on the dev
    data, which are computed now, and its mistakes. A run may be finished, stopped or running. Several runs
    are compared: scores, curves, and the keys of the config in which they differ.

    The page holds everything that it needs, and no script; it can be sent to others. It shows texts of the
    data.

    Example: bertcli report runs/quickstart
    """
    from bertcli.report.options import ReportOptions
    from bertcli.report.write import write_report

    print(write_report(runs, ReportOptions(device, check_data, attributions), output))
