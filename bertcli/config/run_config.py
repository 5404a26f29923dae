"""The folder of a run, given in place of a config file -> the config that the run saved there."""

from __future__ import annotations

import os
import shlex
from pathlib import Path
from typing import Any

from bertcli.errors import UserError
from bertcli.files import has_file
from bertcli.owned.mark import read_note
from bertcli.owned.run_layout import RunLayout, run_of_model


def config_of_run(folder: Path) -> Path:
    """The path of the saved config. Raises `UserError`, which names the run that the folder is a part of."""
    for other in (run_of_model(folder), folder.parent if _is_seed(folder) else None):
        if other is not None and _is_run(other):
            raise UserError(f"{folder}: is a part of the run in {other}; give {other}")
    if not _is_run(folder):
        raise UserError(
            f"{folder}: is a folder, and not that of a run (a run has .bertcli.json and config.yaml, from "
            "its first step on); give a config file (YAML), or the output_dir of a run"
        )
    path = RunLayout(folder).config
    if not has_file(path):
        raise UserError(f"{path}: is missing, so the run cannot say its config; give a config file (YAML)")
    return path


def output_dir(saved: Any, folder: Path) -> str:
    """The run's folder as its config names it, or as it is given now, if it was moved since."""
    is_same = isinstance(saved, str) and Path(saved).resolve() == folder.resolve()
    return saved if is_same else str(folder)


def check_continues(given: Path, resume: bool, verb: str) -> None:
    """Raise `UserError` where a run's folder is given for a run that would not continue it."""
    if os.path.isdir(given) and not resume:
        config = shlex.quote(str(config_of_run(given)))
        raise UserError(
            f"{given}: already has a run. To continue it: bertcli {verb} {shlex.quote(str(given))} --resume. "
            f"For a new run with its config: bertcli {verb} {config} --set output_dir=NEW_FOLDER"
        )


def _is_run(folder: Path) -> bool:
    return read_note(folder, "run") is not None


def _is_seed(folder: Path) -> bool:
    return folder in RunLayout(folder.parent).seed_folders()
