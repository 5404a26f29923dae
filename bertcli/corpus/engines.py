"""Stages of work on this machine, on Slurm or on Ray, by datatrove's executors."""

from __future__ import annotations

import json
import math
import os
import re
import shlex
import shutil
import socket
import subprocess
import sys
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import chdir, contextmanager, nullcontext, redirect_stderr, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from bertcli.corpus.parts import Alone
from bertcli.corpus.pieces import ERROR, LOGS, Pieces, Stage, datatrove_part
from bertcli.corpus.streams import import_extra
from bertcli.system.errors import UserError
from bertcli.system.processes import ProcessDied, in_processes, safe_path, variable
from bertcli.system.terminal import Report, working


@dataclass(frozen=True)
class Placing:
    """The engine that does the work, and how it divides it.

    Attributes:
        engine: local, slurm or ray.
        tasks: the parts that a stage's pieces are divided into.
        workers: tasks at the same time.
        last: the arguments of bertcli in the last job of Slurm, which finds all pieces there.
    """

    tasks: int
    workers: int
    engine: str = "local"
    last: Sequence[str] = ()

    def tasks_of(self, work: Pieces) -> int:
        """The number of tasks of a stage: none is without a piece, if their number is known."""
        late = work.stage.counts_late and self.engine == "slurm"
        return self.tasks if late else max(1, min(self.tasks, work.stage.pieces(work.folder)))


def run_stages(stages: Sequence[Stage], folder: Path, placing: Placing, report: Report) -> None:
    """Compute all stages in `folder`.

    Raises:
        UserError: a piece raised it; a package or a cluster is missing; a task died.
        Planned: the work is for jobs of Slurm.
    """
    folder = folder.absolute()
    (folder / ERROR).unlink(missing_ok=True)
    datatrove_part("datatrove.utils.logging").logger.disable("datatrove")
    works = [
        Pieces(stage, folder, logs=folder / LOGS / str(number), start=os.getcwd())
        for number, stage in enumerate(stages)
    ]
    if placing.engine == "slurm":
        arrays = [(work, placing.tasks_of(work)) for work in works]
        raise plan_jobs(arrays, placing.workers, placing.last)
    with safe_path(), _cluster(folder) if placing.engine == "ray" else nullcontext():
        for work in works:
            report(work.stage.name)
            shutil.rmtree(work.logs / "completions", ignore_errors=True)
            executor = _executor(work, placing)
            with working(lambda work=work: work.stage.name):
                executor.run() if placing.engine == "ray" else _run_here(executor)
            if (folder / ERROR).exists():
                raise UserError((folder / ERROR).read_text(encoding="utf-8"))
            if died := executor.get_incomplete_ranks(skip_completed=True):
                raise UserError(
                    f"{work.stage.name}: {len(died)} of {executor.tasks} tasks died, perhaps because memory "
                    f"ran out; their logs are in {work.logs}. The same command goes on from here"
                )


def _executor(work: Pieces, placing: Placing) -> Any:
    tasks = placing.tasks_of(work)
    given = {"tasks": tasks, "workers": min(placing.workers, tasks), "skip_completed": False}
    given["logging_dir"] = str(work.logs)
    if placing.engine == "ray":
        return datatrove_part("datatrove.executor.ray").RayPipelineExecutor([work], **given)
    return datatrove_part("datatrove.executor.local").LocalPipelineExecutor([work], **given)


def _run_here(executor: Any) -> None:
    """Run the tasks on this machine. One whose process was killed stays incomplete.

    Datatrove's own `run` waits for such a task for ever, and starts a process that outlives this one.
    """
    ranks = range(executor.tasks)
    if executor.workers == 1:
        for rank in ranks:
            _run_task(executor, rank)
        return
    given = (datatrove_part("dill").dumps(executor),)
    with suppress(ProcessDied):
        done = in_processes(
            ranks,
            arguments=lambda rank: (rank,),
            make_worker=_runner,
            given=given,
            processes=executor.workers,
            died="a task died",
            most=len(ranks),  # no process waits for a long task of another one
        )
        deque(done, maxlen=0)


def _runner(pickled: bytes) -> Callable[[int], None]:
    return partial(_run_task, datatrove_part("dill").loads(pickled))


def _run_task(executor: Any, rank: int) -> None:
    """Run a task that does not log: what it has to say is in the folder."""
    datatrove_part("datatrove.utils.logging").logger.disable("datatrove")
    executor._run_for_rank(rank)


NODE_TIMEOUT = ("RAY_agent_register_timeout_ms", "600000")
"""Time that a new node of Ray has to start. After its usual 30 seconds, which a busy machine may need, the
node would be dead, and Ray would wait for it."""


@contextmanager
def _cluster(folder: Path) -> Iterator[None]:
    """Join the cluster that RAY_ADDRESS names; without it, start one here, and stop it at the end."""
    ray = import_extra("ray", "ray", "--engine ray needs Ray", doing="working with it")
    address = os.environ.get("RAY_ADDRESS", "local")
    _check_answer(address)
    # Ray lets its processes import what lies in the current folder, and may send statistics.
    with chdir(folder), variable("RAY_USAGE_STATS_ENABLED", "0"), variable(*NODE_TIMEOUT):
        ray.init(address, include_dashboard=False, log_to_driver=False, logging_level="error")
    try:
        yield
    finally:
        ray.shutdown()


def _check_answer(address: str) -> None:
    """Raise `UserError` if nothing answers at an address; Ray itself would wait for minutes, in silence."""
    host, _, port = address.rpartition("/")[2].rpartition(":")
    if not port.isdecimal():
        return
    try:
        socket.create_connection((host, int(port)), timeout=10).close()
    except OSError as error:
        raise UserError(
            f"RAY_ADDRESS={address}: no cluster answers ({error.strerror or error}); correct the address, or "
            "unset it to work on this machine"
        ) from None


@dataclass(frozen=True)
class EngineTeam(Alone):
    """A team of one process that leaves the parts of a store to the tasks of an engine.

    Attributes:
        folder: that in which the store is built.
    """

    placing: Placing
    folder: Path
    report: Report

    def num_ranks(self) -> int:
        """The number of tasks."""
        return self.placing.tasks

    def for_parts(self, number: int, work: Callable[[int], None]) -> None:
        """Do `work` for each part. Raises as `run_stages`."""
        stage = Stage("tokenizing", lambda _: number, partial(_in_silence, work))
        run_stages([stage], self.folder, self.placing, report=self.report)


def _in_silence(work: Callable[[int], None], _: Path, part: int) -> None:
    """Do a part's work on one core and without output: other tasks work beside it."""
    with (
        open(os.devnull, "w") as nowhere,
        redirect_stderr(nowhere),
        variable("TOKENIZERS_PARALLELISM", "false"),
    ):
        work(part)


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
    executors = [_slurm_executor(work, tasks, workers) for work, tasks in arrays]
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


def _slurm_executor(work: Pieces, tasks: int, workers: int) -> Any:
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
