"""The identity of a fine-tuning run's data: saved at the start, compared on a resume."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from bertcli.config.finetune import FinetuneConfig
from bertcli.errors import UserError
from bertcli.examples.files import find_labeled_file
from bertcli.files import file_hash


def task_identity(config: FinetuneConfig, labels: tuple[str, ...]) -> dict[str, Any]:
    """The labels, and the hash of each labeled file and of the model's own files."""
    names = [name for name in (config.task.train, config.task.dev) if name is not None]
    files = {name: file_hash(find_labeled_file(name)) for name in names}
    files |= {str(path): file_hash(path, "blake2b") for path in _model_files(Path(config.model))}
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


def _model_files(folder: Path) -> list[Path]:
    """Weights and vocabulary: a resume encodes with the vocabulary, and may start from the weights."""
    return sorted(
        path
        for path in folder.glob("*")
        if path.suffix in (".safetensors", ".bin") or path.name in ("vocab.txt", "tokenizer.json")
    )
