"""What is said about a run that was stopped: what is kept of it, and the command that goes on with it."""

from __future__ import annotations

import shlex
from pathlib import Path

from bertcli.distributed import ranks
from bertcli.errors import UserError
from bertcli.owned.run_layout import RunLayout, step_name
from bertcli.owned.sealed import is_intact


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


def spare_finished(layout: RunLayout, checkpoint: Path | None) -> Path | None:
    """The checkpoint that a resume goes on from; None: it begins with the first step, since none was saved.

    Raises `UserError` if that would train a finished run again.
    """
    if checkpoint is None and is_intact(layout.model):
        raise UserError(
            f"cannot resume: {layout.model} is the model of a finished run, and {layout.checkpoints} holds "
            "no checkpoint to go on from. Use the model as it is; to train from the first step again, give "
            "--overwrite or another output_dir"
        )
    return checkpoint


def lost_evaluations(layout: RunLayout) -> UserError:
    """The error of a resume where the best model was kept, and the file is lost that says how good it is."""
    return UserError(
        f"cannot resume: {layout.metrics} {'has no evaluation' if layout.metrics.exists() else 'is gone'}, "
        f"so that {layout.best} cannot be compared with later models. Restore the file; or keep "
        "the models as they are, and start a new run in another output_dir (--overwrite deletes this one)"
    )
