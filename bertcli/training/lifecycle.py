"""What every run has in common: its folder is claimed, its data accepted, and what it trains is prepared.

`pretraining.pretrain` and `finetuning.finetune` tell the whole life of a run, each for its kind.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, TypeVar

from torch import Tensor, nn

from bertcli.batches.share import MicroBatch, Share
from bertcli.config.finetune import FinetuneConfig
from bertcli.config.run import DecidedFinetuning, DecidedPretraining, with_decisions_of
from bertcli.config.schema import PretrainConfig
from bertcli.folders.run_layout import KeptVerdict, write_verdict
from bertcli.folders.sealed import write_folder
from bertcli.objectives.base import Task
from bertcli.reports.pretraining_verdict import Health
from bertcli.system.files import disk_errors
from bertcli.system.signals import said_on_ctrl_c
from bertcli.system.terminal import say
from bertcli.training import ranks
from bertcli.training.best import BestModel
from bertcli.training.checkpoint import RunState, SaveModel
from bertcli.training.commands import resume_command, stopped_at_once
from bertcli.training.followers import Followers
from bertcli.training.identity import read_run_data, write_run_data
from bertcli.training.loop import LoopSettings
from bertcli.training.run_folder import Input, RunFolder, check_resumable
from bertcli.training.scores import Scores

NOT_BEGUN = "stopped before the first step: there is nothing to resume; the same command starts again"
Asked = TypeVar("Asked", PretrainConfig, FinetuneConfig)
Decided = DecidedPretraining | DecidedFinetuning
Identity = dict[str, Any]
"""What a run reads, as JSON (`training.identity`)."""


class Run(Generic[Asked]):
    """A run that holds its folder.

    Attributes:
        verb: the name of the command, also shown in the progress bar.
        asked: the config as it was given; on a resume, with the decisions of the saved run.
        resume: true if `--resume` was given.
        resume_command: the command that resumes the run.
        saved: the decided config of the run that goes on; None: no run was accepted here before.
        followers: the trackers of the run, which `claimed` tells of its end.
    """

    def __init__(self, verb: str, asked: Asked, resume: bool, given: Path):
        """`given`: the folder that the command names, which may hold the runs of seeds or folds."""
        self.verb, self.asked, self.resume = verb, asked, resume
        self.resume_command = resume_command(verb, given)
        self.folder = RunFolder(Path(asked.output_dir), type(asked))
        self.saved: Asked | None = None
        self.followers = Followers(self.folder)
        self._has_begun = False

    def lost(self) -> str:
        """The line that says what is lost, and how to go on, if the run ends at once."""
        return stopped_at_once(self.folder, self.resume_command) if self._has_begun else NOT_BEGUN

    @contextmanager
    def claimed(self, inputs: Callable[[], Iterable[Input]], overwrite: bool) -> Iterator[None]:
        """A context in which the run holds its folder and has read the saved run there. Every rank enters it.

        Args:
            inputs: a function that gives all files that the run reads, which `overwrite` must not remove.

        Raises:
            UserError: bad input, a folder in use, a full disk, a run that diverged. Saved files stay intact.
            SystemExit: after a signal to stop; a checkpoint is saved.
        """
        with said_on_ctrl_c(self.lost), ranks.first_holds(self.folder.claim(self.resume, overwrite, inputs)):
            self.saved = ranks.on_first(self.folder.saved_config) if self.resume else None
            if self.saved is not None:
                self.asked = with_decisions_of(self.asked, self.saved)
                self._has_begun = True
            with self.followers:
                yield

    def compare(
        self, config: Decided, identity: Identity, check: Callable[[Identity, Identity, Path], None]
    ) -> None:
        """Raise `UserError` if a resume has another config, or other data, than the run had at its start.

        Args:
            identity: all data that the run reads (`training.identity`).
            check: a function that raises the error if the identity at the start, which is read from a file,
                differs from the one now; it is called with both, and with the file.
        """

        def compare() -> None:
            if self.saved is None:
                return
            check_resumable(self.saved, config, say)
            before = read_run_data(self.folder.data, {key: type(value) for key, value in identity.items()})
            if before is not None:
                check(before, identity, self.folder.data)

        ranks.on_first(compare)

    def accept(self, config: Decided, identity: Identity) -> None:
        """Write the config and the identity of the data; from now on there is something to resume."""

        def accept() -> None:
            self._has_begun = True
            self.folder.accept(config)
            write_run_data(self.folder.data, identity)

        ranks.on_first(accept)

    def publish(self, folder: Path, save_model: SaveModel, weights: Mapping[str, Tensor]) -> None:
        """Write a model folder atomically, on the first rank only; an old one stays until the end.

        Raises `UserError` if the disk is full or not writable, or the run was moved.
        """

        def publish() -> None:
            with self.folder.stays(), disk_errors(f"{folder}: the model could not be written"):
                write_folder(folder, lambda path: save_model(path, weights))

        ranks.on_first(publish)

    def keep_verdict(self, verdict: KeptVerdict) -> None:
        """Write the verdict of the run, on the first rank only, after the model is saved.

        Raises `UserError` if the disk is full or not writable.
        """
        ranks.on_first(lambda: write_verdict(self.folder.verdict, verdict))


FEWEST_STEPS = 20
"""Fewest steps between two checkpoints after epochs, because to write one takes as long as several steps."""


def steps_between_checkpoints(every: int | None, epoch: int) -> int:
    """The steps between two checkpoints: `every`, or for None so many epochs that they are not too near."""
    return every or epoch * math.ceil(FEWEST_STEPS / epoch)


@dataclass(frozen=True, kw_only=True)
class Prepared(ABC):
    """What a run trains, and how; nothing in it is left to be decided.

    Attributes:
        config: the decided config.
        share: the rule by which each step is divided over the ranks.
        best: the best model by the held-out scores, which is kept; None: only the last model is.
        branch_step: the step whose checkpoint is kept so that a longer run can continue from it, or None.
        steps_per_epoch: steps of an epoch; None: epochs are not counted.
    """

    config: Decided
    model: nn.Module
    task: Task
    loop: LoopSettings
    share: Share
    steps: int
    best: BestModel | None
    branch_step: int | None = None
    steps_per_epoch: int | None = None

    @property
    @abstractmethod
    def is_evaluated(self) -> bool:
        """Whether something is held out, so that `evaluate` can be called."""

    @abstractmethod
    def lines(self) -> Iterator[str]:
        """Lines that say what is trained, and how."""

    @abstractmethod
    def micro_batches(self, first_step: int) -> Iterator[list[MicroBatch]]:
        """This rank's share of each step, from the step of that number on."""

    @abstractmethod
    def evaluate(self) -> Scores:
        """The held-out scores of the model."""

    @abstractmethod
    def save(self, folder: Path, weights: Mapping[str, Tensor]) -> None:
        """Write a model folder, here that of a checkpoint."""

    @abstractmethod
    def read_weights(self, folder: Path) -> Mapping[str, Tensor]:
        """The weights in a model folder: name in the model -> weight."""

    @property
    def health(self) -> Health:
        """The reference values of the losses."""
        return Health()

    def work(self, steps: int) -> float:
        """The work of all steps up to a step, in any unit."""
        return steps

    def rate_scale(self, name: str) -> float:
        """The factor of the learning rate of the parameter with this name."""
        return 1.0

    def is_usable(self, state: RunState) -> bool:
        """True if a resume may go on from a checkpoint with these counters."""
        return True
