"""Work that is cut into pieces, as steps of datatrove's pipelines.

A piece writes its own files, and what is there already is not computed again. So the engine, the number of
tasks, their order and kills change nothing in the files.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bertcli.corpus.streams import import_extra
from bertcli.system.errors import UserError
from bertcli.system.files import lock_file

LOGS = "logs"
"""The folder for locks, errors and datatrove's files, in the folder of the work."""
ERROR = f"{LOGS}/error.txt"
_PATIENCE = 600.0
"""Seconds to wait for a process with the same piece; its parent may have been killed."""


@dataclass(frozen=True)
class Stage:
    """One stage of a work; it begins when the one before has ended.

    Attributes:
        name: what it does, for the user.
        pieces: folder -> their number.
        work: called with the folder and the number of a piece.
        counts_late: `pieces` has no answer until the stage before has ended.
    """

    name: str
    pieces: Callable[[Path], int]
    work: Callable[[Path, int], None]
    counts_late: bool = False


@dataclass(frozen=True)
class Pieces:
    """A step of a pipeline: the pieces of one task. An error is written to a file, since an engine would add
    a traceback, and no task begins after it.

    Attributes:
        folder, logs: absolute paths.
        start: the folder from which relative paths lead.
    """

    stage: Stage
    folder: Path
    logs: Path
    start: str

    def __call__(self, data: Any, rank: int, world_size: int) -> None:
        """Compute the pieces rank, rank + world_size, ..."""
        del data
        os.chdir(self.start)  # on other machines, Ray starts elsewhere
        error = self.folder / ERROR
        if error.exists():
            return
        refusal, instead = f"{self.folder}: a part is being written by", "wait for it, and run this again"
        try:
            for piece in range(rank, self.stage.pieces(self.folder), world_size):
                with lock_file(self.logs / f"{piece}.lock", refusal, instead, patience=_PATIENCE):
                    self.stage.work(self.folder, piece)
        except UserError as refused:
            error.write_text(str(refused), encoding="utf-8", errors="backslashreplace")


def datatrove_part(module: str) -> Any:
    """A module of datatrove, or of what it needs. Raises `UserError` if the extra is missing."""
    return import_extra(module, "scale", "the work is divided by datatrove", doing="dividing it")
