"""The run folder (`output_dir`): its lock, the conditions of a resume, and what is never overwritten.

Its content: `bertcli.owned.run_layout`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, Generic, TypeVar

from pydantic import BaseModel

from bertcli.checkpoints.run_contents import (
    Input,
    check_links,
    check_spared,
    find_foreign,
    remove_run,
    removed_paths,
)
from bertcli.config.load import config_text, differences, load_config
from bertcli.errors import UserError
from bertcli.files import disk_errors, lock_file
from bertcli.owned.mark import Note, read_note, sweep, write_note, write_own
from bertcli.owned.run_layout import RunLayout
from bertcli.terminal import say

_MAY_CHANGE = (
    *("output_dir", "corpus.general", "logging.", "evaluation."),
    *("checkpoint.every_steps", "checkpoint.keep_last"),
    *("data.workers", "training.parallel"),
)
"""Keys that a resume may change: they do not affect the weights. A run's folder may be moved."""
_MAY_GROW = ("training.steps", "training.epochs")

Config = TypeVar("Config", bound=BaseModel)


class RunFolder(RunLayout, Generic[Config]):
    """Paths of a run, and the rules for a resume and for overwriting; `schema`: of its config."""

    def __init__(self, root: Path, schema: type[Config]):
        super().__init__(root)
        self._schema, self._overwrite = schema, False

    @property
    def is_taken(self) -> bool:
        """Whether there is a run of bertcli."""
        return read_note(self.root, "run") is not None

    def check_free(self, overwrite: bool) -> None:
        """Check, before anything is written, that the run would overwrite only what bertcli wrote.

        Raises `UserError` that lists anything else.
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
    def claim(
        self, resume: bool, overwrite: bool, inputs: Callable[[], Iterable[Input]] = lambda: ()
    ) -> Iterator[None]:
        """Lock the folder against other processes; an old run in it stays until `accept`.

        In a job of several processes, one claims it for all.

        Args:
            inputs: gives all that the run reads.

        Raises:
            UserError: another process runs here; there is a run, but no flag says what to do with it;
                `overwrite` would delete what it reads; the run would overwrite what bertcli did not write;
                or the folder cannot be written.
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

    def accept(self, config: Config, own_part: Path | None = None) -> None:
        """Write the config of a run that can start; a run that it overwrites is removed only now.

        Also removes what killed processes left. `own_part`: the folder of a seed of the new run, which stays.
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


def check_resumable(saved: BaseModel, current: BaseModel, report: Callable[[str], None]) -> None:
    """Compare two resolved configs; allowed changes are reported, and an error lists all others."""
    refused = []
    for key, (old, new) in differences(saved, current).items():
        if key.startswith(_MAY_CHANGE) or (key in _MAY_GROW and new > old):
            report(f"resume: {key} changes from {old} to {new}")
        else:
            refused.append(f"{key}: {_show(old)} in the run, {_show(new)} now")
    if refused:
        head = "cannot resume: the config differs from the run's in keys that change its result:"
        advice = (
            "restore these, or start a new run in another output_dir (logging, evaluation, checkpoint steps, "
            "corpus.general, data.workers and training.parallel may change, training.steps and epochs may "
            "grow)"
        )
        raise UserError("\n  ".join([head, *refused, advice]))


def _show(value: Any) -> str:
    return "null" if value is None else str(value)
