"""Real runs of several ranks: they compute what one does, and under torchrun what dies is begun again."""

from __future__ import annotations

import itertools
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.finetunes import spam_config, spam_files, write_model
from tests.small_runs import (
    losses,
    read_rows,
    run_cli,
    small_config,
    start_and_signal,
    write_config,
    write_corpus,
)
from tests.warm import Warm


def torchrun(*arguments: object, ranks: int = 2, restarts: int = 0) -> subprocess.Popen[str]:
    launcher = ["torch.distributed.run", "--standalone", f"--nproc-per-node={ranks}"]
    command = [sys.executable, "-m", *launcher, f"--max-restarts={restarts}", "-m", "bertcli"]
    environment = os.environ | {"OMP_NUM_THREADS": "1"}
    pipes: dict[str, Any] = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    return subprocess.Popen([*command, *map(str, arguments)], env=environment, **pipes)


def start_ranks(*arguments: object, ranks: int = 2) -> list[Warm]:
    """The ranks of a command, in the environment that torchrun makes."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    shared = {"WORLD_SIZE": ranks, "LOCAL_WORLD_SIZE": ranks, "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port}
    return [
        Warm(
            *arguments,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=os.environ | {key: str(value) for key, value in (shared | of_rank(rank)).items()},
        )
        for rank in range(ranks)
    ]


def of_rank(rank: int) -> dict[str, int]:
    return {"RANK": rank, "LOCAL_RANK": rank}


def on_ranks(*arguments: object, ranks: int = 2) -> tuple[str, str]:
    """What the first rank says; the others end well too."""
    processes = start_ranks(*arguments, ranks=ranks)
    said = ends(processes)
    assert [process.returncode for process in processes] == [0] * ranks, said
    return said[0]


def ends(processes: Sequence[subprocess.Popen[str]]) -> list[tuple[str, str]]:
    """What the processes said. One that hangs says where: SIGABRT lets it print the lines of its threads."""
    try:
        return [process.communicate(timeout=300) for process in processes]
    except subprocess.TimeoutExpired:
        for process in processes:
            process.send_signal(signal.SIGABRT)
        raise AssertionError([process.communicate(timeout=30) for process in processes]) from None


def at_step(run: Path, step: int, process: subprocess.Popen[str], act: Callable[[], None]) -> None:
    metrics, deadline = run / "metrics.jsonl", time.monotonic() + 120
    while not (metrics.exists() and f'"step": {step},' in metrics.read_text()):
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < deadline
        time.sleep(0.002)
    act()


@pytest.fixture(scope="module")
def text(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = write_corpus(tmp_path_factory.mktemp("corpus") / "text.txt")
    chapters = path.read_text(encoding="utf-8").split("\n\n")
    path.write_text("\n\n".join(chapters[:25]), encoding="utf-8")
    path.with_name("other.txt").write_text("\n\n".join(chapters[25:]), encoding="utf-8")
    return path


def config(text: Path, folder: Path, **training: Any) -> Path:
    """Two sources whose weights move; with dropout, in two micro-batches a step; judged after each step."""
    training = {"steps": 20, "warmup_steps": 5} | training
    value = small_config(
        text,
        folder / "run",
        model={"dropout": 0.1},
        training=training,
        evaluation={"every_steps": 1, "batches": 2},
        checkpoint={"every_steps": 5, "keep_last": 9},
    )
    value["corpus"] |= {
        "sources": [
            {"files": value["corpus"].pop("files"), "weight": [3.0, 1.0]},
            {"files": str(text.with_name("other.txt")), "weight": [1.0, 2.0]},
        ]
    }
    return write_config(folder / "config.yaml", value)


@pytest.fixture(scope="module")
def alone(text: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The run of one process."""
    folder = tmp_path_factory.mktemp("alone")
    done = run_cli("pretrain", config(text, folder))
    assert done.returncode == 0, done.stderr
    return folder / "run"


def same_bits(run: Path, other: Path) -> bool:
    weights = "model/model.safetensors"
    return (
        losses(run / "metrics.jsonl") == losses(other / "metrics.jsonl")
        and (run / weights).read_bytes() == (other / weights).read_bytes()
    )


def test_two_ranks_give_the_bits_of_one_though_one_is_killed(text: Path, alone: Path, tmp_path: Path) -> None:
    process = torchrun("pretrain", config(text, tmp_path), restarts=1)

    def kill_last_rank() -> None:
        children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
        os.kill(int(children[-1]), signal.SIGKILL)

    at_step(tmp_path / "run", 12, process, kill_last_rank)
    out, err = process.communicate(timeout=300)
    assert process.returncode == 0, err
    assert out.split() == [str(tmp_path / "run" / "model")]
    assert "2 ranks (ddp)" in err
    assert "resuming from" in err
    assert same_bits(tmp_path / "run", alone)


def forget_last_evaluation(metrics: Path) -> None:
    """As if the signal to stop had come before it; a resume then begins with it."""
    rows = metrics.read_text().splitlines(keepends=True)
    metrics.write_text("".join(rows[:-1] if '"heldout"' in rows[-1] else rows))


def test_stopped_on_two_it_goes_on_in_parts_and_ends_alone(text: Path, alone: Path, tmp_path: Path) -> None:
    run = tmp_path / "run"
    first, second = start_ranks("pretrain", config(text, tmp_path))
    at_step(run, 6, first, first.terminate)
    second.terminate()
    said = ends((first, second))
    assert [rank.returncode for rank in (first, second)] == [128 + signal.SIGTERM] * 2, said
    steps = [row["step"] for row in read_rows(run / "metrics.jsonl", "train")]
    assert (run / "checkpoints" / f"step-{steps[-1]:08d}").exists()  # saved, whatever step it was
    forget_last_evaluation(run / "metrics.jsonl")

    on_ranks("pretrain", config(text, tmp_path, parallel="fsdp"), "--resume")
    newest = sorted((run / "checkpoints").iterdir())
    for checkpoint in newest[newest.index(run / "checkpoints" / "step-00000020") :]:
        shutil.rmtree(checkpoint)
    done = run_cli("pretrain", config(text, tmp_path), "--resume")
    assert done.returncode == 0, done.stderr
    assert f"resuming from {run / 'checkpoints' / 'step-00000015'}" in done.stderr
    for (step, *_, loss, _), (other, *_, expected, _) in zip(
        losses(run / "metrics.jsonl"), losses(alone / "metrics.jsonl"), strict=True
    ):
        assert step == other
        assert loss == pytest.approx(expected, rel=1e-5)


def test_fine_tuning_and_judging_on_three_ranks(tmp_path: Path) -> None:
    """Of 16 rows a step, cut in two, the third rank has none; the dev rows are shared out."""
    files = spam_files(tmp_path / "files")
    runs = []
    for name in ("alone", "shared"):
        value = spam_config(files, output_dir=str(tmp_path / name), seeds=[1, 2])
        value["training"] |= {"epochs": 1, "micro_batch_size": 6}
        path = write_config(tmp_path / f"{name}.yaml", value)
        if name == "alone":
            assert run_cli("finetune", path).returncode == 0
        else:
            on_ranks("finetune", path, ranks=3)
        runs.append(tmp_path / name)
    for alone, shared in zip(*(read_rows(run / "seed-1" / "metrics.jsonl") for run in runs), strict=True):
        assert shared["loss"] == pytest.approx(alone["loss"], rel=1e-5)

    data = ["--data", files / "dev.tsv", "--json"]
    one = json.loads(run_cli("evaluate", runs[0], *data).stdout)
    three = json.loads(on_ranks("evaluate", runs[0], *data, ranks=3)[0])
    assert three.pop("loss") == pytest.approx(one.pop("loss"), rel=1e-6)
    assert three == one


def test_fine_tuning_in_windows_goes_on_in_parts_from_an_evaluation(tmp_path: Path) -> None:
    files = spam_files(tmp_path / "files")

    def config(name: str, **training: Any) -> Path:
        value = spam_config(files, output_dir=str(tmp_path / name), evaluation={"every_steps": 1})
        value["training"] |= training
        value["task"] |= {"windows": "mean", "doc_stride": 8}
        return write_config(tmp_path / f"{name}.yaml", value)

    alone, stopped = tmp_path / "alone", tmp_path / "stopped"
    assert run_cli("finetune", config("alone")).returncode == 0
    assert start_and_signal("finetune", config("stopped"), stopped, step=2, number=signal.SIGTERM) == 143
    forget_last_evaluation(stopped / "metrics.jsonl")
    step = read_rows(stopped / "metrics.jsonl", "train")[-1]["step"]
    _, err = on_ranks("finetune", config("stopped", parallel="fsdp"), "--resume")
    assert f"\nstep {step} held out" in err
    rows = (read_rows(run / "metrics.jsonl") for run in (stopped, alone))
    for row, expected in zip(*rows, strict=True):
        assert row["loss"] == pytest.approx(expected["loss"], rel=1e-5)


def test_a_loss_that_joins_all_rows_is_that_of_one_rank(tmp_path: Path) -> None:
    """Of 10 pairs a step, cut in micro-batches of two pairs, the second rank computes two and a dummy."""
    write_model(tmp_path / "bert")
    lines = [
        f"{a} {b}\t{b} the {a}" for a, b in itertools.permutations(("red", "old", "dark", "warm", "new"), 2)
    ]
    (tmp_path / "pairs.tsv").write_text("\n".join(["a\tb", *lines]) + "\n")
    runs = []
    for name in ("alone", "shared"):
        value = spam_config(tmp_path, output_dir=str(tmp_path / name))
        columns = {"type": "sentence-embedding", "text": ["a", "b"], "max_length": 32}
        value["task"] = {"train": str(tmp_path / "pairs.tsv"), **columns}
        value["training"] |= {"epochs": 2, "batch_size": 10, "micro_batch_size": 4}
        path = write_config(tmp_path / f"{name}.yaml", value)
        if name == "alone":
            assert run_cli("finetune", path).returncode == 0
        else:
            on_ranks("finetune", path)
        runs.append(read_rows(tmp_path / name / "metrics.jsonl"))
    assert len(runs[0]) == 4
    for alone, shared in zip(*runs, strict=True):
        for key in ("loss", "grad_norm"):
            assert shared[key] == pytest.approx(alone[key], rel=1e-5)


def test_text_is_judged_together(text: Path, alone: Path) -> None:
    arguments = ["evaluate", alone, "--corpus", text, "--max-length", 32, "--batches", 3, "--json"]
    one = json.loads(run_cli(*arguments).stdout)
    two = json.loads(on_ranks(*arguments)[0])
    assert two == pytest.approx(one, rel=1e-6)


def test_an_error_is_said_once_and_ends_all_ranks(text: Path, alone: Path) -> None:
    ranks = start_ranks("pretrain", alone / "config.yaml")
    said = [rank.communicate(timeout=120) for rank in ranks]
    assert [rank.returncode for rank in ranks] == [2, 2]
    assert [out for out, _ in said] == ["", ""]
    assert said[0][1].count("already has a run: --resume continues it") == 1
    assert said[1][1] == ""
