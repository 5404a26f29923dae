"""Work that is cut into pieces, on the cores of this machine, by datatrove.

A piece writes its own files, and what is there already is not computed again. So the number of tasks, their
order and kills change nothing in the files.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bertcli.corpus.streams import import_extra
from bertcli.system.errors import UserError
from bertcli.system.processes import safe_path
from bertcli.system.terminal import Report, working

ERROR = "error.txt"


@dataclass(frozen=True)
class Stage:
    """One stage of a work; it begins when the one before has ended.

    Attributes:
        name: what it does, for the user.
        pieces: folder -> their number.
        work: called with the folder and the number of a piece.
    """

    name: str
    pieces: Callable[[Path], int]
    work: Callable[[Path, int], None]


@dataclass(frozen=True)
class Placing:
    """The processes of the work.

    Attributes:
        tasks: the parts that a stage's pieces are divided into.
        workers: tasks at the same time.
    """

    tasks: int
    workers: int


def run_stages(stages: Sequence[Stage], folder: Path, placing: Placing, report: Report) -> None:
    """Compute all stages in `folder`. Raises the `UserError` of a piece."""
    (folder / ERROR).unlink(missing_ok=True)
    for number, stage in enumerate(stages):
        executor = _executor(stage, folder, placing, logs=folder / f"logs-{number}")
        report(stage.name)
        with working(lambda stage=stage: stage.name), safe_path():
            executor.run()
        if (folder / ERROR).exists():
            raise UserError((folder / ERROR).read_text(encoding="utf-8"))


def _executor(stage: Stage, folder: Path, placing: Placing, logs: Path) -> Any:
    local = _part("datatrove.executor.local")
    log = _part("datatrove.utils.logging")
    log.logger.disable("datatrove")

    class Quiet(local.LocalPipelineExecutor):
        """Its tasks do not log: what they have to say is in the folder."""

        def _launch_run_for_rank(self, *arguments: Any, **named: Any) -> Any:
            log.logger.disable("datatrove")
            return super()._launch_run_for_rank(*arguments, **named)

    tasks = max(1, min(placing.tasks, stage.pieces(folder)))
    workers = min(placing.workers, tasks)
    given = {"tasks": tasks, "workers": workers, "logging_dir": str(logs), "skip_completed": False}
    return Quiet([_Pieces(stage, folder)], **given)


def _part(module: str) -> Any:
    return import_extra(module, "scale", "the work is divided by datatrove", doing="dividing it")


@dataclass(frozen=True)
class _Pieces:
    """A step of a pipeline: the pieces of one task. An error is written to a file, since a pool would add a
    traceback."""

    stage: Stage
    folder: Path

    def __call__(self, data: Any, rank: int, world_size: int) -> None:
        """Compute the pieces rank, rank + world_size, ..."""
        del data
        try:
            for piece in range(rank, self.stage.pieces(self.folder), world_size):
                self.stage.work(self.folder, piece)
        except UserError as error:
            (self.folder / ERROR).write_text(str(error), encoding="utf-8")
