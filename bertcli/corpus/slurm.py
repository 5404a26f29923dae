"""Work as jobs of Slurm: an array of jobs for each stage, and a last job that puts the pieces together."""

from __future__ import annotations

import json
import math
import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from bertcli.corpus.pieces import ERROR, Pieces, datatrove_part
from bertcli.system.errors import UserError

_MOST_JOBS = 1000
"""The most jobs of an array; Slurm's own limit, unless a site has changed it, is 1,001."""


class Planned(Exception):
    """The work, and what would follow it here, is that of jobs, to be submitted once this process holds no
    lock.

    Attributes:
        scripts: one for each job, in their order.
    """

    def __init__(self, scripts: Sequence[Path]):
        super().__init__(scripts)
        self.scripts = scripts


def plan_jobs(arrays: Sequence[tuple[Pieces, int]], workers: int, last: Sequence[str]) -> Planned:
    """Write the scripts: of an array for each step with its number of tasks, then of the job that runs
    bertcli with the arguments `last`."""
    executors = [_executor(work, tasks, workers) for work, tasks in arrays]
    scripts = [_array_script(executor) for executor in executors]
    return Planned([*scripts, _last_script(executors[-1], last, folder=arrays[-1][0].folder)])


def check_sbatch() -> None:
    """Raise `UserError` if no jobs can be submitted here."""
    if shutil.which("sbatch") is None:
        raise UserError(
            "--engine slurm: there is no sbatch on this machine; run the command where jobs are submitted, "
            "or see its scripts with --dry-run"
        )


def submit(scripts: Sequence[Path]) -> list[str]:
    """Submit jobs, each to run after the one before. Return their numbers. Raises `UserError` if one is
    refused."""
    jobs: list[str] = []
    for script in scripts:
        after = [f"--dependency=afterok:{job}" for job in jobs[-1:]]
        command = ["sbatch", "--parsable", *after, str(script)]
        done = subprocess.run(command, capture_output=True, text=True)
        number = re.search(r"\d+", done.stdout)
        if done.returncode or number is None:
            cancel = f"; to cancel the jobs before it: scancel {' '.join(jobs)}" if jobs else ""
            raise UserError(f"sbatch refused {script}: {(done.stderr or done.stdout).strip()}{cancel}")
        jobs.append(number[0])
    return jobs


def shown(scripts: Sequence[Path]) -> Iterator[str]:
    """What `submit` does, as commands of a shell, each with its script."""
    for number, script in enumerate(scripts):
        after = "--dependency=afterok:$job " if number else ""
        yield f"job=$(sbatch --parsable {after}{shlex.quote(str(script))})"
        yield script.read_text(encoding="utf-8")


def _executor(work: Pieces, tasks: int, workers: int) -> Any:
    return datatrove_part("datatrove.executor.slurm").SlurmPipelineExecutor(
        [work],
        tasks=tasks,
        time=None,
        partition=None,  # Slurm's, or what the variables of sbatch say
        workers=workers,
        job_name="bertcli",
        qos="",
        env_command=f'export PATH={shlex.quote(os.path.dirname(sys.executable))}:"$PATH"',
        sbatch_args={"kill-on-invalid-dep": "yes"},  # otherwise jobs wait for ever after one that failed
        logging_dir=str(work.logs),
        skip_completed=False,
        tasks_per_job=math.ceil(tasks / _MOST_JOBS),
    )


def _array_script(executor: Any) -> Path:
    """Write what datatrove's `launch_job` does, which would submit a copy, and a job that adds statistics."""
    dill = datatrove_part("dill")
    with executor.logging_dir.open("executor.pik", "wb") as file:
        dill.dump(executor, file, fmode=dill.CONTENTS_FMODE)
    with executor.logging_dir.open("ranks_to_run.json", "w") as file:
        json.dump(list(range(executor.tasks)), file)
    logs = Path(executor.logging_dir.path)
    given = executor.get_sbatch_args(math.ceil(executor.tasks / executor.tasks_per_job))
    run = f"launch_pickled_pipeline {shlex.quote(str(logs / 'executor.pik'))}"
    return _write(logs / "job.slurm", executor, given=given, run=run)


def _last_script(executor: Any, last: Sequence[str], folder: Path) -> Path:
    error = shlex.quote(str(folder / ERROR))
    given = executor.get_sbatch_args()
    for name in ("array", "output", "error"):  # its output would be in a folder that the command removes
        del given[name]
    command = shlex.join([sys.executable, "-P", "-m", "bertcli", *last])
    run = f"test ! -e {error} || {{ cat {error} >&2; exit 2; }}\n{command}"
    return _write((folder / ERROR).with_name("last.slurm"), executor, given=given, run=run)


def _write(path: Path, executor: Any, given: dict[str, Any], run: str) -> Path:
    quoted = {name: value and shlex.quote(str(value)) for name, value in given.items() if value is not None}
    path.write_text(executor.get_launch_file_contents(quoted, run), encoding="utf-8")
    return path
