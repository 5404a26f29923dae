"""The run folder (`output_dir`): whose it is, what may be resumed, and what is never overwritten.

`bertcli.owned.run_layout` says what stands in it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, Generic, TypeVar

from pydantic import BaseModel

from bertcli.checkpoints.run_contents import check_links, find_foreign, remove_run, seed_folders
from bertcli.config.load import config_text, differences, load_config
from bertcli.errors import UserError
from bertcli.files import disk_errors, lock_file
from bertcli.owned.mark import Note, read_note, sweep, write_note, write_own
from bertcli.owned.run_layout import RunLayout
from bertcli.terminal import say

_MAY_CHANGE = ("output_dir", "logging.", "evaluation.", "checkpoint.", "data.workers", "training.parallel")
"""Keys that a resume may change: none of them touches the weights of a step. A run's folder may be moved."""
_MAY_GROW = ("training.steps", "training.epochs")

Config = TypeVar("Config", bound=BaseModel)


class RunFolder(RunLayout, Generic[Config]):
    """Paths of a run, and the rules for using them again; `schema` is that of its config."""

    def __init__(self, root: Path, schema: type[Config]):
        super().__init__(root)
        self._schema, self._overwrite = schema, False

    @property
    def is_taken(self) -> bool:
        """Whether bertcli began a run here, and nobody removed it."""
        return read_note(self.root, "run") is not None

    def check_free(self, overwrite: bool) -> None:
        """Before anything is written: nothing that is not bertcli's stands where the run would write.

        Raises `UserError` naming what does.
        """
        check_links(self.root)
        foreign = find_foreign(self.root, self.is_taken, overwrite)
        if foreign:
            raise UserError(
                f"output_dir {self.root}: {', '.join(foreign)} {'stands' if len(foreign) == 1 else 'stand'} "
                "there, not written by bertcli or changed since, and the run would write there too: choose "
                "another output_dir, or move that elsewhere (a run that is copied or moved needs its "
                ".bertcli.json)"
            )

    @contextmanager
    def claim(self, resume: bool, overwrite: bool, source: Path | None = None) -> Iterator[None]:
        """Hold the folder against other processes; a run that is here stays until `accept`.

        In a job of several processes one claims it for all.

        Args:
            source: the model folder that the run begins from.

        Raises:
            UserError: another process runs here; a run is here, and neither flag says what to do with it; it
                is to be deleted, and `source` with it; something that is not bertcli's is in the way; or the
                folder cannot be written.
        """
        if resume and overwrite:
            raise UserError("give --resume or --overwrite, not both")
        begun_from = source.resolve() if source and overwrite else None
        if begun_from and any(begun_from.is_relative_to(path.resolve()) for path in self._run_folders()):
            raise UserError(
                f"--overwrite would delete {source}, the model to begin from, with the run in {self.root}: "
                "choose another output_dir, or copy the model elsewhere first"
            )
        self._overwrite = overwrite
        with ExitStack() as held:
            with disk_errors(f"output_dir {self.root} cannot be used"):
                self.check_free(overwrite)
                self.root.mkdir(parents=True, exist_ok=True)
                held.enter_context(
                    lock_file(
                        self.lock,
                        f"output_dir {self.root} is in use by",
                        "wait for its end, or choose another output_dir",
                    )
                )
                if self.is_taken and not (resume or overwrite):
                    raise UserError(
                        f"output_dir {self.root} holds a run already: --resume goes on with it, --overwrite "
                        "deletes it (its token store stays), or choose another output_dir"
                    )
            yield

    def saved_config(self) -> Config | None:
        """The resolved config of the run that is here; None before the first step of the first run."""
        return load_config(self._schema, self.config) if self.config.exists() else None

    def accept(self, config: Config, own_part: Path | None = None) -> None:
        """Write down the config of a run that can begin; only now does the run that it overwrites go.

        So does what killed processes left. `own_part` is the folder of a seed of the new run, which stays.
        """
        with disk_errors(f"output_dir {self.root} could not be emptied"):
            sweep([self.root, self.checkpoints, self.model])
            left = remove_run(self.root, own_part) if self._overwrite else []
        if left:
            say(f"left where they are, not written by bertcli or changed since: {', '.join(map(str, left))}")
        with disk_errors(f"{self.config}: the config could not be written"):
            if self._overwrite or not self.is_taken:
                write_note(self.root, Note("run", {self.metrics.name: []}))
            self._overwrite = False
            if self.saved_config() != config:
                write_own(self.config, config_text(config))

    def _run_folders(self) -> list[Path]:
        return [self.checkpoints, self.model, *seed_folders(self.root)]


def check_resumable(saved: BaseModel, wanted: BaseModel, report: Callable[[str], None]) -> None:
    """Compare two resolved configs; what may change is reported, the rest is an error that lists it all."""
    refused = []
    for key, (old, new) in differences(saved, wanted).items():
        if key.startswith(_MAY_CHANGE) or (key in _MAY_GROW and new > old):
            report(f"resume: {key} changes from {old} to {new}")
        else:
            refused.append(f"{key}: {_show(old)} in the run, {_show(new)} now")
    if refused:
        raise UserError(
            "\n  ".join(
                [
                    "cannot resume: the config differs from the run's in what shapes its result:",
                    *refused,
                    "put these back, or start a new run in another output_dir (logging, evaluation, "
                    "checkpoint, data.workers and training.parallel may change, training.steps and epochs "
                    "may grow)",
                ]
            )
        )


def _show(value: Any) -> str:
    return "null" if value is None else str(value)
