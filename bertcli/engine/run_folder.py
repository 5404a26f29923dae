"""The run folder (`output_dir`): whose it is, what may be resumed, and what is never overwritten.

.lock            whose it is now
config.yaml      the resolved config, complete
data.json        the hashes of the files that it learns from, and the labels or the vocabulary's hash
metrics.jsonl    one line per logged step or evaluation
store/           the token store (`bertcli.store`)
checkpoints/     `bertcli.engine.checkpoint`
model/           the final model
seed-N/, seeds.json   where `seeds` asks for several runs (`bertcli.engine.seeds`)
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, Generic, TypeVar

from pydantic import BaseModel

from bertcli.config.load import differences, load_config, save_config
from bertcli.errors import UserError
from bertcli.files import disk_errors, lock_file, remove_folder

_MAY_CHANGE = ("output_dir", "logging.", "evaluation.", "checkpoint.", "data.workers", "training.parallel")
"""Keys that a resume may change: none of them touches the weights of a step. A run's folder may be moved."""
_MAY_GROW = ("training.steps", "training.epochs")

Config = TypeVar("Config", bound=BaseModel)


class RunFolder(Generic[Config]):
    """Paths of a run, and the rules for using them again; `schema` is that of its config."""

    def __init__(self, root: Path, schema: type[Config]):
        self.root, self._schema, self._overwrite = root, schema, False
        self.lock = root / ".lock"
        self.config = root / "config.yaml"
        self.data = root / "data.json"
        self.metrics = root / "metrics.jsonl"
        self.checkpoints = root / "checkpoints"
        self.model = root / "model"
        self.seeds = root / "seeds.json"

    @property
    def is_taken(self) -> bool:
        return any(path.exists() for path in self._own())

    @contextmanager
    def claim(self, resume: bool, overwrite: bool, source: Path | None = None) -> Iterator[None]:
        """Hold the folder against other processes; a run that is here stays until `accept`.

        In a job of several processes one claims it for all.

        Args:
            source: the model folder that the run begins from.

        Raises:
            UserError: another process runs here; a run is here, and neither flag says what to do with it; it
                is to be deleted, and `source` with it; or the folder cannot be written.
        """
        if resume and overwrite:
            raise UserError("give --resume or --overwrite, not both")
        begun_from = source.resolve() if source and overwrite else None
        if begun_from and any(begun_from.is_relative_to(path.resolve()) for path in self._own()):
            raise UserError(
                f"--overwrite would delete {source}, the model to begin from, with the run in {self.root}: "
                "choose another output_dir, or copy the model elsewhere first"
            )
        self._overwrite = overwrite
        with ExitStack() as held:
            with disk_errors(f"output_dir {self.root} cannot be used"):
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
                for path in self._unfinished():
                    shutil.rmtree(path)
            yield

    def saved_config(self) -> Config | None:
        """The resolved config of the run that is here; None before the first step of the first run."""
        return load_config(self._schema, self.config) if self.config.exists() else None

    def accept(self, config: Config, own_part: Path | None = None) -> None:
        """Write down the config of a run that can begin; only now does the run that it overwrites go.

        `own_part` is the folder of a seed of the new run, which stays.
        """
        with disk_errors(f"output_dir {self.root} could not be emptied"):
            for path in self._own() if self._overwrite else []:
                if path != own_part:
                    remove_folder(path) if path.is_dir() else path.unlink(missing_ok=True)
        self._overwrite = False
        with disk_errors(f"{self.config}: the config could not be written"):
            save_config(config, self.config)

    def _own(self) -> list[Path]:
        files = [self.config, self.data, self.metrics, self.seeds]
        return [*files, self.checkpoints, self.model, self.root / "tensorboard", *self._runs_of_seeds()]

    def _unfinished(self) -> list[Path]:
        """Folders that a killed process was writing or removing."""
        return [*self.root.glob(".model.*"), *self.checkpoints.glob(".*")]

    def _runs_of_seeds(self) -> list[Path]:
        return [
            path
            for path in self.root.glob("seed-*")
            if path.name.removeprefix("seed-").isdecimal() and RunFolder(path, self._schema).is_taken
        ]


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
