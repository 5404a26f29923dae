"""The options of a command whose work an engine may do, and what is said once Slurm has it."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from bertcli.cli.options import count
from bertcli.system.terminal import say

if TYPE_CHECKING:
    from bertcli.corpus.engines import Placing

EngineName = Literal["local", "slurm", "ray"]
Tasks = Annotated[
    int | None, count(..., "Parts that the files are divided into. Default: four for each worker.")
]
Workers = Annotated[
    int | None,
    count(..., "Parts in work at the same time. Default: one for each core of this machine."),
]


def placing_of(
    engine: EngineName,
    tasks: int | None,
    workers: int | None,
    command: Sequence[str | Path],
    dry_run: bool,
) -> Placing:
    """The engine that does the work of `command`, which is given without options of the engine.

    Raises `UserError` if `sbatch` is missing.
    """
    from bertcli.corpus.engines import Placing
    from bertcli.corpus.slurm import check_sbatch

    if engine == "slurm" and not dry_run:
        check_sbatch()
    workers = workers or len(os.sched_getaffinity(0))
    tasks = tasks or 4 * workers
    last = [*map(str, command), "--engine", "local", "--tasks", str(tasks), "--workers", "1"]
    return Placing(tasks, workers, engine, last=last)


@contextmanager
def jobs_submitted(dry_run: bool, json_: bool) -> Iterator[None]:
    """End the block where its work is for jobs of Slurm; submit and print them, or only show them."""
    from bertcli.corpus.slurm import Planned, shown, submit

    try:
        yield
    except Planned as work:
        if dry_run:
            print(*shown(work.scripts), sep="\n")
            return
        jobs = submit(work.scripts)
        say(
            "the last of these jobs puts the result together, and writes what this command would print to "
            f"slurm-{jobs[-1]}.out. The logs of the others are in {work.scripts[-1].parent}. After a job "
            "that failed, the same command goes on"
        )
        print(json.dumps({"jobs": jobs}) if json_ else "\n".join(jobs))
