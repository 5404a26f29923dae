"""A run folder: which of its files bertcli wrote, and the rules for claiming, resuming and overwriting it."""

import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any, Generic, NamedTuple, TypeVar

from pydantic import BaseModel

from bertcli.config.finetune import FinetuneConfig
from bertcli.config.load import config_text, load_config
from bertcli.config.schema import PretrainConfig
from bertcli.config.section import differences
from bertcli.folders.mark import (
    NOTE,
    Note,
    is_own_file,
    read_note,
    remove_matching,
    sweep,
    write_note,
    write_own,
)
from bertcli.folders.run_layout import FILES, FOLDERS, RunLayout, is_best, is_step
from bertcli.folders.sealed import MANIFEST, contents, listed_files, remove_own
from bertcli.system.errors import UserError
from bertcli.system.files import disk_errors, is_lock, lock_file
from bertcli.system.remote import InputPath
from bertcli.system.terminal import Report, say
from bertcli.training.followers import GRACE, LOCK
from bertcli.training.metrics_log import begins_as_metrics, is_metrics

MODEL_FILES = (
    *("config.json", "model.safetensors", "README.md", MANIFEST),
    *("tokenizer.json", "tokenizer_config.json", "vocab.txt"),
)


class Input(NamedTuple):
    """A file or folder that a run reads: the config's key for it, its name in `data.json`, its path."""

    key: str
    name: str
    path: InputPath


def check_links(root: Path) -> None:
    """Raise `UserError` if a folder of a run is a broken link."""
    for name in (*FOLDERS, "store"):
        path = root / name
        if path.is_symlink() and not path.is_dir():
            raise UserError(
                f"{path}: a link to a missing folder ({path.readlink()}); create that folder, or remove the "
                "link"
            )


def find_foreign(root: Path, is_taken: bool, overwrite: bool) -> list[str]:
    """The names in `root` that a run would write to and that hold something not written by bertcli.

    `is_taken`: there is a run already, which will be overwritten or resumed.
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

    `own_part`: the folder of a seed or fold that stays. Returns the files in the run's folders that bertcli
    did not write. Raises `OSError` if a file cannot be removed.
    """
    if read_note(root, "run") is None:
        return []
    layout = RunLayout(root)
    sweep([root])
    left = [*_remove_entries(layout.trackers), *remove_model(layout), *remove_checkpoints(layout)]
    for folder in (layout.model, layout.checkpoints, layout.trackers):
        with suppress(OSError):
            folder.rmdir()
    for path in part_folders(root):
        if path != own_part:
            left += _remove_part(path)
    for name in FILES:
        if _is_own(root / name):
            (root / name).unlink()
    return left


def remove_model(layout: RunLayout) -> list[Path]:
    """Remove the final model of a run as `remove_run`."""
    sweep([layout.model])
    return remove_own(layout.model, keep=layout.model.is_symlink())


def remove_checkpoints(layout: RunLayout) -> list[Path]:
    """Remove the checkpoints of a run, and its best model, as `remove_run`."""
    sweep([layout.checkpoints])
    left = []
    for path in sorted(layout.checkpoints.iterdir()) if layout.checkpoints.is_dir() else []:
        left += remove_own(path) if is_step(path) or is_best(path) else [path]
    return left


def removed_paths(root: Path) -> list[Path]:
    """The files and folders in which `remove_run` removes what bertcli wrote; some may not exist."""
    own = [root / name for name in (*FILES, *FOLDERS)]
    return [*own, *(path for folder in part_folders(root) for path in removed_paths(folder))]


def check_spared(removed: Iterable[Path], inputs: Iterable[Input], advice: str) -> None:
    """Raise `UserError` if an input is in a path that `--overwrite` removes; links are followed.

    `advice`: another place where the command may write.
    """
    places = {path.resolve() for path in removed}
    for key, _, path in inputs:
        if isinstance(path, Path) and places.intersection([(real := path.resolve()), *real.parents]):
            raise UserError(
                f"--overwrite would delete {path}, which is read because of {key}: {advice}, or copy it "
                "elsewhere first"
            )


def part_folders(root: Path) -> list[Path]:
    """The runs of seeds or folds in a run folder."""
    return [path for path in RunLayout(root).part_folders() if read_note(path, "run") is not None]


def _remove_part(root: Path) -> list[Path]:
    left = remove_run(root)
    (root / NOTE).unlink()
    if is_lock(lock := RunLayout(root).lock):
        lock.unlink()
    with suppress(OSError):
        root.rmdir()
    return left


def _remove_entries(folder: Path) -> list[Path]:
    """Remove what the trackers wrote in their folders; return the paths that are left.

    Raises `UserError` while the tracker of a killed run still completes its entry.
    """
    left = []
    for entry in sorted(folder.iterdir()) if folder.is_dir() else []:
        note = read_note(entry, "tracker")
        if note is None:
            left.append(entry)
            continue
        with lock_file(entry / LOCK, f"{entry} is in use by", "wait for its end", patience=GRACE):
            remove_matching(entry, [*note.files, NOTE])
        left += sorted(entry.iterdir())
        with suppress(OSError):
            entry.rmdir()
    return left


def _is_own(path: Path) -> bool:
    return is_own_file(path) and (path.name != "metrics.jsonl" or is_metrics(path))


def _holds_something(folder: Path) -> bool:
    return os.path.lexists(folder) and (not folder.is_dir() or any(folder.iterdir()))


def _in_the_way(model: Path) -> list[str]:
    """The files in `model/` that have the name of a model file, but were not written by bertcli."""
    if not model.is_dir():
        return []
    names = {*MODEL_FILES, *listed_files(model)}
    others = [str(path.relative_to(model)) for path in contents(model).others]
    return [f"model/{name}" for name in others if name in names]


_MAY_CHANGE = (
    *("output_dir", "corpus.general", "logging.", "evaluation."),
    *("checkpoint.every_steps", "checkpoint.keep_last"),
    *("data.workers", "training.parallel", "clean."),
)
"""Keys that a resume may change: they do not affect the weights, but evaluations do if the best are kept."""
_MAY_GROW = ("training.steps", "training.epochs")

Config = TypeVar("Config", bound=BaseModel)


class RunFolder(RunLayout, Generic[Config]):
    """The paths of a run, and the rules for resuming and overwriting. `schema`: the type of its config."""

    def __init__(self, root: Path, schema: type[Config]):
        super().__init__(root)
        self._schema, self._overwrite = schema, False

    @property
    def is_taken(self) -> bool:
        """True if the folder has a run of bertcli."""
        return read_note(self.root, "run") is not None

    def check_free(self, overwrite: bool) -> None:
        """Check, before anything is written, that the run would overwrite only what bertcli wrote.

        Raises a `UserError` that lists everything else.
        """
        check_links(self.root)
        foreign = find_foreign(self.root, self.is_taken, overwrite)
        if foreign:
            raise UserError(
                f"output_dir {self.root}: the run would overwrite {', '.join(foreign)}, not written by "
                "bertcli or changed since: choose another output_dir, or move that elsewhere (a run that is "
                "copied or moved needs its .bertcli.json)"
            )

    @contextmanager
    def claim(self, resume: bool, overwrite: bool, inputs: Callable[[], Iterable[Input]]) -> Iterator[None]:
        """Lock the folder against other processes; an old run in it stays until `accept`.

        In a job of several processes, one process claims it for all.

        Args:
            inputs: a function that gives everything that the run reads.

        Raises:
            UserError: another process runs here; there is a run, but no flag says what to do with it;
                `overwrite` would delete an input of the new run; the run would overwrite what bertcli did not
                write; or the folder cannot be written.
        """
        if resume and overwrite:
            raise UserError("give --resume or --overwrite, not both")
        if overwrite:
            check_spared(removed_paths(self.root), inputs(), "choose another output_dir")
        self._overwrite = overwrite
        with ExitStack() as held:
            with disk_errors(f"output_dir {self.root} cannot be used"):
                self.check_free(overwrite)
                self.root.mkdir(parents=True, exist_ok=True)
                advice = "wait for its end, or choose another output_dir"
                held.enter_context(lock_file(self.lock, f"output_dir {self.root} is in use by", advice))
                self.settle()
                if self.is_taken and not (resume or overwrite):
                    raise UserError(
                        f"output_dir {self.root} already has a run: --resume continues it, --overwrite "
                        "deletes it (its token store stays), or choose another output_dir"
                    )
            yield

    def saved_config(self) -> Config | None:
        """The resolved config of the run; None before the first step of the first run."""
        return load_config(self._schema, self.config) if self.config.exists() else None

    def accept(self, config: BaseModel, own_part: Path | None = None) -> None:
        """Write the config of a run that can start; only now remove the run that it overwrites.

        Files that killed processes left are removed too. `own_part`: the folder of a seed or fold of
        the new run, which stays.
        """
        with disk_errors(f"output_dir {self.root} could not be emptied"):
            sweep([self.root, self.checkpoints, self.model])
            left = remove_run(self.root, own_part) if self._overwrite else []
        if left:
            say(f"not removed, not written by bertcli or changed since: {', '.join(map(str, left))}")
        with disk_errors(f"{self.config}: the config could not be written"):
            if self._overwrite or not self.is_taken:
                write_note(self.root, Note("run", {self.metrics.name: []}))
            self._overwrite = False
            if self.saved_config() != config:
                write_own(self.config, config_text(config))


def check_resumable(
    saved: PretrainConfig | FinetuneConfig, current: PretrainConfig | FinetuneConfig, report: Report
) -> None:
    """Compare two resolved configs; report allowed changes, and list all others in a `UserError`."""
    refused = []
    may_change = tuple(key for key in _MAY_CHANGE if key != "evaluation." or not saved.keeps_best)
    for key, (old, new) in differences(saved, current).items():
        if key.startswith(may_change) or (key in _MAY_GROW and new > old):
            report(f"resume: {key} changes from {old} to {new}")
        else:
            refused.append(f"{key}: {_show(old)} in the run, {_show(new)} now")
    if refused:
        head = "cannot resume: the config differs from the run's in keys that change its result:"
        advice = (
            "restore these, or begin anew in another output_dir (logging, checkpoint steps, data.workers and "
            "training.parallel may change, and evaluation where it does not choose the model; training.steps "
            "and epochs may grow)"
        )
        raise UserError("\n  ".join([head, *refused, advice]))


def _show(value: Any) -> str:
    return "null" if value is None else str(value)
