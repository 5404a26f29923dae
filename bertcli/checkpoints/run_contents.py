"""The content of a run folder: which files bertcli wrote, which it did not, and which belong to the run."""

from __future__ import annotations

import os
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from bertcli.checkpoints.metrics_log import begins_as_metrics, is_metrics
from bertcli.errors import UserError
from bertcli.files import is_lock
from bertcli.owned.folders import remove_own
from bertcli.owned.mark import NOTE, is_own_file, read_note, sweep
from bertcli.owned.run_layout import FILES, FOLDERS, RunLayout, is_best, is_step
from bertcli.owned.sealed import MANIFEST, contents, listed_files

MODEL_FILES = (
    *("config.json", "model.safetensors", "README.md", MANIFEST),
    *("tokenizer.json", "tokenizer_config.json", "vocab.txt"),
)


class Input(NamedTuple):
    """A file or folder that a run reads: the config's key for it, its name in `data.json`, its path."""

    key: str
    name: str
    path: Path


def check_links(root: Path) -> None:
    """Raises `UserError` if a folder of a run is a broken link."""
    for name in (*FOLDERS, "store"):
        path = root / name
        if path.is_symlink() and not path.is_dir():
            raise UserError(
                f"{path}: a link to a missing folder ({path.readlink()}); create that folder, or remove the "
                "link"
            )


def find_foreign(root: Path, is_taken: bool, overwrite: bool) -> list[str]:
    """The names in `root` that a run would write to, but that hold something not written by bertcli.

    `is_taken`: there is a run, which will be overwritten or resumed.
    """
    if not is_taken:
        files = [name for name in (NOTE, *FILES) if os.path.lexists(root / name)]
        return files + [f"{name}/" for name in FOLDERS if _holds_something(root / name)]
    there = [name for name in FILES + FOLDERS if os.path.lexists(root / name)]
    if overwrite:
        files = [name for name in there if name in FILES and not _is_own(root / name)]
    else:  # a resume checks the other files itself when it reads or writes them
        files = [name for name in there if name == "metrics.jsonl" and not begins_as_metrics(root / name)]
    folders = [f"{name}/" for name in there if name in FOLDERS and not (root / name).is_dir()]
    return [*files, *folders, *_in_the_way(RunLayout(root).model)]


def remove_run(root: Path, own_part: Path | None = None) -> list[Path]:
    """Remove what bertcli wrote in a run folder, except its store, its lock and its note.

    `own_part`: the folder of a seed that stays. Returns the files in the run's folders that bertcli did not
    write. Raises `OSError` if they cannot be removed.
    """
    if read_note(root, "run") is None:
        return []
    layout = RunLayout(root)
    model, checkpoints = layout.model, layout.checkpoints
    sweep([root, checkpoints, model])
    left = remove_own(model, keep=model.is_symlink())
    for path in sorted(checkpoints.iterdir()) if checkpoints.is_dir() else []:
        left += remove_own(path) if is_step(path) or is_best(path) else [path]
    left += _remove_events(layout.tensorboard)
    for folder in (model, checkpoints, layout.tensorboard):
        with suppress(OSError):
            folder.rmdir()
    for path in seed_folders(root):
        if path != own_part:
            left += _remove_seed(path)
    for name in FILES:
        if _is_own(root / name):
            (root / name).unlink()
    return left


def removed_paths(root: Path) -> list[Path]:
    """The files and folders in which `remove_run` removes what bertcli wrote; some may not exist."""
    own = [root / name for name in (*FILES, *FOLDERS)]
    return [*own, *(path for folder in seed_folders(root) for path in removed_paths(folder))]


def check_spared(removed: Iterable[Path], inputs: Iterable[Input], advice: str) -> None:
    """Raise `UserError` where a file that is read lies in what `--overwrite` removes, by whatever path.

    `advice`: where else the command may write.
    """
    places = {path.resolve() for path in removed}
    for key, _, path in inputs:
        if places.intersection([(real := path.resolve()), *real.parents]):
            raise UserError(
                f"--overwrite would delete {path}, which is read because of {key}: {advice}, or copy it "
                "elsewhere first"
            )


def seed_folders(root: Path) -> list[Path]:
    """The runs of seeds in a run folder."""
    return [path for path in RunLayout(root).seed_folders() if read_note(path, "run") is not None]


def _remove_seed(root: Path) -> list[Path]:
    left = remove_run(root)
    (root / NOTE).unlink()
    if is_lock(lock := RunLayout(root).lock):
        lock.unlink()
    with suppress(OSError):
        root.rmdir()
    return left


def _remove_events(folder: Path) -> list[Path]:
    """Remove TensorBoard's files; returns what is left in their folder."""
    note = read_note(folder, "tensorboard")
    for name in note.files if note else []:
        if is_own_file(folder / name, "tensorboard"):
            (folder / name).unlink()
    if note:
        (folder / NOTE).unlink()
    return sorted(folder.iterdir()) if folder.is_dir() else []


def _is_own(path: Path) -> bool:
    return is_own_file(path) and (path.name != "metrics.jsonl" or is_metrics(path))


def _holds_something(folder: Path) -> bool:
    return os.path.lexists(folder) and (not folder.is_dir() or any(folder.iterdir()))


def _in_the_way(model: Path) -> list[str]:
    """The files in `model/` that bertcli did not write, but that have the name of a model's file."""
    if not model.is_dir():
        return []
    names = {*MODEL_FILES, *listed_files(model)}
    others = [str(path.relative_to(model)) for path in contents(model).others]
    return [f"model/{name}" for name in others if name in names]
