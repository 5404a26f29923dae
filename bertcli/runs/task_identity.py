"""The identity of a fine-tuning run's data: saved at the start, compared on a resume."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from bertcli.config.finetune import FinetuneConfig
from bertcli.errors import UserError
from bertcli.examples.files import find_labeled_file
from bertcli.files import file_hash
from bertcli.hf.locate import resolve_model
from bertcli.runs.model_identity import model_identity


def task_identity(config: FinetuneConfig, labels: tuple[str, ...]) -> dict[str, Any]:
    """The labels, and the hash of each labeled file and of the files of model and teacher."""
    names = [name for name in (config.task.train, config.task.dev) if name is not None]
    files = {name: file_hash(find_labeled_file(name)) for name in names}
    files |= model_identity(Path(config.model))
    if config.distillation is not None:
        files |= model_identity(resolve_model(config.distillation.teacher))
    return {"labels": list(labels), "files": files}


def check_same_data(before: dict[str, Any], now: dict[str, Any], path: Path) -> None:
    """Check on a resume that labels and files are those that are saved in `path`.

    Raises:
        UserError: they changed.
    """
    if before["labels"] != now["labels"]:
        raise UserError(
            f"cannot resume: the labels are {', '.join(now['labels']) or 'none'} now, and were "
            f"{', '.join(before['labels']) or 'none'} at the start of the run ({path}); restore the file, or "
            "start a new run in another output_dir"
        )
    changed = [name for name, content in now["files"].items() if before["files"].get(name) != content]
    if changed:
        raise UserError(
            f"cannot resume: {', '.join(changed)} changed since the start of the run ({path}); restore it, "
            "or start a new run in another output_dir"
        )
