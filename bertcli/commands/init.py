"""`bertcli init FILES`: a config for the user's files, machine and time."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Annotated, Literal

import typer

from bertcli.commands.options import number
from bertcli.config.section import MOST
from bertcli.terminal import say


def init(
    files: Annotated[
        list[str],
        typer.Argument(metavar="FILES", help="A corpus or a labeled file: files, folders, globs, a sample."),
    ],
    output: Annotated[Path, typer.Option(metavar="FILE", help="The config to write.")] = Path("bertcli.yaml"),
    minutes: Annotated[
        float,
        typer.Option(min=0.1, max=MOST, callback=number, help="How long the run may take on this machine."),
    ] = 30,
    purpose: Annotated[
        Literal["pretrain", "finetune"] | None,
        typer.Option(
            "--for", metavar="pretrain|finetune", help="What the files are for; default: by their content."
        ),
    ] = None,
    model: Annotated[
        str | None,
        typer.Option(metavar="MODEL", help="To start with: a run, any model folder, or a hub id."),
    ] = None,
) -> None:
    """Write a config for your files that runs as it is, with a reason for each value.

    Looks at the text or the labels and at this machine: some seconds of steps are measured, so that the run
    takes the time that you give. Nothing else is written, and no file is replaced.

    Example: bertcli init texts/ --minutes 30
    """
    from bertcli.start.init import init as run

    written = run(files, output, purpose, model=model, minutes=minutes, report=say)
    for line in written.summary:
        say(line)
    say(f"written: {output}; next: bertcli {written.command} {shlex.quote(str(output))}")
    print(output)
