"""What is said about a run that was stopped: what is kept of it, and the command that goes on with it."""

from __future__ import annotations

import shlex
from pathlib import Path

from bertcli.distributed import ranks
from bertcli.owned.run_layout import RunLayout, step_name


def resume_command(verb: str, folder: Path) -> str:
    """The command that resumes the run in `folder`, with as many processes on this machine as now."""
    launcher = ""
    if ranks.num_ranks() > 1:
        launcher = f"torchrun --nproc-per-node {ranks.num_local_ranks()} -m "
    return f"{launcher}bertcli {verb} {shlex.quote(str(folder))} --resume"


def stopped_at_once(layout: RunLayout, command: str) -> str:
    """The line about a run that ended without saving; `command`: that resumes it."""
    complete = layout.steps()
    if not complete:
        return f"stopped at once: no checkpoint was saved yet; from the first step: {command}"
    step = int(step_name(complete[0]).removeprefix("step-"))
    return f"stopped at once: all after the checkpoint of step {step} is lost; to go on from there: {command}"
