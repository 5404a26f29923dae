"""Engines change no byte: tasks on this machine, killed ones, and a cluster of Ray."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from bertcli.config.run import PretrainRecipe
from bertcli.corpus import build, chunks, engines
from bertcli.corpus.begin import partial_of
from bertcli.corpus.build import prepare_store
from bertcli.corpus.clean.run import clean_corpus
from bertcli.corpus.engines import NODE_TIMEOUT, EngineTeam, Placing, run_stages
from bertcli.corpus.pieces import Stage
from bertcli.corpus.writer import StoreWriter
from bertcli.system.errors import UserError
from tests.corpus.builds import contents, make_config, silent, write_corpus_folder

pytest.importorskip("datatrove")


def prepared(config: PretrainRecipe, placing: Placing) -> dict[str, bytes]:
    team = EngineTeam(placing, partial_of(config), silent)
    return contents(prepare_store(config, silent, processes=0, team=team).folder)


def cleaned(config: PretrainRecipe, out: Path, placing: Placing) -> dict[str, bytes]:
    clean_corpus(config, out, placing, dry_run=False, page=lambda account: "a page", report=silent)
    return contents(out)


@pytest.fixture
def config(tmp_path: Path) -> PretrainRecipe:
    return make_config(write_corpus_folder(tmp_path))


@pytest.fixture
def alone(config: PretrainRecipe, tmp_path: Path) -> dict[str, bytes]:
    """The store that one process builds."""
    other = make_config(tmp_path, store=str(tmp_path / "alone"))
    return contents(prepare_store(other, silent, processes=0).folder)


def test_tasks_build_the_store_of_one_process(config: PretrainRecipe, alone: dict[str, bytes]) -> None:
    assert prepared(config, Placing(tasks=8, workers=2)) == alone  # more tasks than files


def test_a_killed_task_changes_no_byte(
    config: PretrainRecipe, alone: dict[str, bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    add, left = StoreWriter.add, 0

    def add_some(*arguments: Any) -> None:
        nonlocal left
        left -= 1
        if left < 0:
            raise KeyboardInterrupt
        add(*arguments)

    for left in (0, 2, 5):  # noqa: B007 - `add_some` reads it
        with monkeypatch.context() as patch:
            patch.setattr(StoreWriter, "add", add_some)
            patch.setattr(chunks, "CHUNK_CHARACTERS", 1500)
            patch.setattr(build, "JOURNAL_SECONDS", 0)
            with pytest.raises(KeyboardInterrupt):
                prepared(config, Placing(tasks=2, workers=1))
    assert prepared(config, Placing(tasks=2, workers=1)) == alone


def test_a_text_that_cannot_be_read_is_said_without_a_traceback(tmp_path: Path) -> None:
    corpus = tmp_path / "corpus"
    corpus.mkdir()
    for name, key in (("a", "text"), ("b", "no")):
        (corpus / f"{name}.jsonl").write_text(f'{{"{key}": "one two"}}\n' * 40)
    with pytest.raises(UserError, match=r"b\.jsonl, line 1: no key 'text'"):
        prepared(make_config(tmp_path, format="jsonl"), Placing(tasks=2, workers=2))


def test_a_task_that_died_is_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engines, "_run_here", lambda executor: None)  # as Ray ends with tasks that died
    stage = Stage("writing", lambda _: 3, lambda folder, piece: None)
    with pytest.raises(UserError, match=r"^writing: 2 of 2 tasks died, perhaps because memory ran out"):
        run_stages([stage], tmp_path, Placing(tasks=2, workers=1), report=silent)


PROGRAM = """
import os, signal, sys, time
from pathlib import Path
from bertcli.corpus.engines import Placing, run_stages
from bertcli.corpus.pieces import Stage

def work(folder, piece):
    (folder / "begun").touch()
    if sys.argv[2] == "kill" and piece:
        os.kill(os.getpid(), signal.SIGKILL)
    time.sleep(0 if sys.argv[2] == "kill" else 1000)

if __name__ == "__main__":
    stage = Stage("writing", lambda _: 2, work)
    workers = int(sys.argv[3])
    run_stages([stage], Path(sys.argv[1]), Placing(tasks=2, workers=workers), report=print)
"""


def started(folder: Path, what: str, workers: int) -> subprocess.Popen[str]:
    """A program that works in `folder`, in a group of its own."""
    (folder / "program.py").write_text(PROGRAM)
    command = [sys.executable, folder / "program.py", folder, what, str(workers)]
    return subprocess.Popen(command, stderr=subprocess.PIPE, text=True, start_new_session=True)


def wait_for(path: Path) -> None:
    end = time.monotonic() + 100
    while not path.exists():
        assert time.monotonic() < end
        time.sleep(0.05)


def test_a_killed_process_ends_the_work_with_a_message(tmp_path: Path) -> None:
    _, err = started(tmp_path, "kill", workers=2).communicate(timeout=100)
    assert re.search(r"UserError: writing: [12] of 2 tasks died, perhaps because memory ran out", err)


@pytest.mark.parametrize("workers", [1, 2])
def test_no_process_outlives_the_killed_one(tmp_path: Path, workers: int) -> None:
    program = started(tmp_path, "wait", workers)
    wait_for(tmp_path / "begun")
    program.kill()
    program.communicate(timeout=60)  # it ends when nobody holds stderr any longer


def test_ctrl_c_ends_the_tasks_without_their_tracebacks(tmp_path: Path) -> None:
    program = started(tmp_path, "wait", workers=2)
    wait_for(tmp_path / "begun")
    os.killpg(program.pid, signal.SIGINT)
    _, err = program.communicate(timeout=60)
    assert err.count("Traceback") == 1, err
    assert program.returncode == -signal.SIGINT


def test_a_missing_package_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(UserError, match=r"--engine ray needs Ray, .*pip install 'bertcli\[ray\]'"):
        run_stages([], tmp_path, Placing(1, 1, "ray"), report=silent)
    monkeypatch.setitem(sys.modules, "datatrove.utils.logging", None)
    with pytest.raises(UserError, match=r"divided by datatrove, .*pip install 'bertcli\[scale\]'"):
        run_stages([], tmp_path, Placing(1, 1), report=silent)


@pytest.mark.filterwarnings("ignore:placement_group:DeprecationWarning")  # how datatrove calls Ray
def test_a_cluster_of_ray_changes_no_byte(
    config: PretrainRecipe,
    alone: dict[str, bytes],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    pytest.importorskip("ray")
    from ray.cluster_utils import Cluster

    here = cleaned(config, tmp_path / "here", Placing(tasks=1, workers=1))
    monkeypatch.setenv(*NODE_TIMEOUT)
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parents[2]))  # the tasks get functions of tests
    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 1, "include_dashboard": False})
    try:
        cluster.add_node(num_cpus=1)
        monkeypatch.setenv("RAY_ADDRESS", str(cluster.address))
        assert prepared(config, Placing(tasks=2, workers=2, engine="ray")) == alone
        assert cleaned(config, tmp_path / "ray", Placing(tasks=2, workers=2, engine="ray")) == here
    finally:
        cluster.shutdown()


def test_a_cluster_that_does_not_answer_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RAY_ADDRESS", "127.0.0.1:1")
    with pytest.raises(
        UserError, match=r"^RAY_ADDRESS=127\.0\.0\.1:1: no cluster answers \(Connection refused\)"
    ):
        run_stages([], tmp_path, Placing(1, 1, "ray"), report=silent)
