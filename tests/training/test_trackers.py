"""The entry of a run in each tracker, read in the tracker's own format: each step once, also after a kill."""

from __future__ import annotations

import importlib
import json
import signal
import sqlite3
import struct
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from bertcli.folders.run_layout import RunLayout
from bertcli.system.files import lock_file
from bertcli.training import followers
from bertcli.training.run_folder import remove_run
from bertcli.training.trackers import TRACKERS, metrics_of
from tests.small_runs import read_rows, run_cli, small_config, start_and_signal, write_config, write_corpus

Point = tuple[str, int, float]
"""The name of a metric, its step and its value."""


def in_tensorboard(folder: Path) -> tuple[list[Point], str]:
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    (file,) = folder.glob("events.*")
    events = EventAccumulator(str(file), size_guidance={"scalars": 0, "tensors": 0})
    events.Reload()
    points = [(name, e.step, e.value) for name in events.Tags()["scalars"] for e in events.Scalars(name)]
    texts = {name: events.Tensors(name) for name in events.Tags()["tensors"]}
    shown = {name: b"".join(values[-1].tensor_proto.string_val).decode() for name, values in texts.items()}
    return points, " ".join(shown.values())


def in_mlflow(folder: Path) -> tuple[list[Point], str]:
    with sqlite3.connect(folder / "mlflow.db") as database:
        ((_, status),) = database.execute("select run_uuid, status from runs").fetchall()
        assert status in ("FINISHED", "KILLED")
        texts = database.execute(
            "select key, value from params union all select key, value from tags"
        ).fetchall()
        return database.execute("select key, step, value from metrics").fetchall(), str(texts)


def in_trackio(folder: Path) -> tuple[list[Point], str]:
    with sqlite3.connect(folder / "bertcli.db") as database:
        assert database.execute("pragma journal_mode").fetchall() == [("delete",)]
        ((config,),) = database.execute("select config from configs").fetchall()
        assert len(database.execute("select distinct run_id from metrics").fetchall()) == 1
        rows = [
            (step, json.loads(metrics))
            for step, metrics in database.execute("select step, metrics from metrics")
        ]
    values = [(name, step, value) for step, metrics in rows for name, value in metrics.items()]
    points = [each for each in values if not isinstance(each[2], dict)]
    return points, f"{config} {[each for each in values if isinstance(each[2], dict)]}"


def in_wandb(folder: Path) -> tuple[list[Point], str]:
    """Read the file of an offline run: records of protobuf in the log format of LevelDB."""
    pb = importlib.import_module("wandb.proto.wandb_internal_pb2")
    (path,) = folder.glob("offline-run-*/run-*.wandb")
    data, at, whole, points, texts = path.read_bytes(), 7, b"", list[Point](), list[str]()
    while at + 7 <= len(data):
        room = 32768 - at % 32768
        if room < 7:
            at += room
            continue
        _, size, kind = struct.unpack_from("<IHB", data, at)
        if kind == 0:
            break
        whole, at = whole + data[at + 7 : at + 7 + size], at + 7 + size
        if kind in (1, 4):  # complete, or the last part
            record = pb.Record.FromString(whole)
            whole = b""
            if record.WhichOneof("record_type") == "history":
                items = {
                    each.key or "/".join(each.nested_key): each.value_json for each in record.history.item
                }
                step = int(items["_step"])
                points += [(name, step, json.loads(value)) for name, value in items.items() if name[0] != "_"]
            else:
                texts.append(str(record))
    return points, " ".join((*texts, *(card.read_text() for card in path.parent.glob("files/README.md"))))


READ: dict[str, Callable[[Path], tuple[list[Point], str]]] = {
    "tensorboard": in_tensorboard,
    "mlflow": in_mlflow,
    "wandb": in_wandb,
    "trackio": in_trackio,
}


def wait_until_free(folder: Path) -> None:
    with lock_file(folder / followers.LOCK, "in use", "", patience=60):
        pass


ELSEWHERE = {
    "TRACKIO_STORAGE_MODE": "jsonl",  # what `auto` takes on a network file system
    "TRACKIO_BUCKET_ID": "someone/bucket",
    "TRACKIO_DATASET_ID": "someone/dataset",
    "SPACE_REPO_NAME": "space",  # without it, TRACKIO_DATASET_ID does nothing
}
"""Variables that lead trackers out of the folder."""


@pytest.mark.parametrize("name", TRACKERS)
def test_a_killed_and_resumed_run_is_one_entry_with_each_step_once(
    tmp_path: Path, name: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in TRACKERS[name].modules:
        pytest.importorskip(module.partition(".")[0])
    for variable, value in ELSEWHERE.items():
        monkeypatch.setenv(variable, value)
    text = write_corpus(tmp_path / "corpus.txt", documents=8)
    logging = {"every_steps": 1, "trackers": [name]}
    run = RunLayout(tmp_path / "what?" / "run%20 50%")  # a URI of this needs quotes
    corpus = {"encodings": {str(text.with_name("cor*.txt")): "latin-1"}}  # MLflow takes no * in a name
    config = write_config(tmp_path / "c.yaml", small_config(text, run.root, corpus=corpus, logging=logging))
    folder = run.trackers / name
    assert start_and_signal("pretrain", config, run.root, 8, signal.SIGKILL) == -signal.SIGKILL
    while not (folder / "id").exists():  # it begins after the run; when the run is gone, it takes all rows
        time.sleep(0.05)
    wait_until_free(folder)
    id = (folder / "id").read_text()
    before, _ = READ[name](folder)
    assert max(step for _, step, _ in before) >= 8  # more than the checkpoint of step 5 has
    done = run_cli("pretrain", config, "--resume")
    assert (done.returncode, "warning: the tracker" in done.stderr) == (0, False)
    points, texts = READ[name](folder)
    assert (folder / "id").read_text() == id
    wanted = Counter((key, row["step"]) for row in read_rows(run.metrics) for key in metrics_of(row))
    assert Counter((key, step) for key, step, _ in points) == wanted
    losses = {row["step"]: row["loss"] for row in read_rows(run.metrics, "train")}
    assert {step: value for key, step, value in points if key == "train/loss"} == pytest.approx(losses)
    assert "micro_batch_size" in texts
    assert "verdict: " in texts
    assert "## Corpus" in texts  # of the model card

    assert {each.name for each in tmp_path.iterdir()} <= {"corpus.txt", "c.yaml", "store", "what?"}
    assert [each.name for each in run.root.parent.iterdir()] == [run.root.name]
    (folder / "notes.txt").write_text("mine")
    assert remove_run(run.root) == [folder / "notes.txt"]


def test_the_names_are_those_of_the_trainer_of_transformers() -> None:
    train = {"step": 3, "epoch": 0.5, "split": "train", "loss": None, "grad_norm": 2.0, "tokens": 9}
    assert metrics_of(train) == {"train/epoch": 0.5, "train/grad_norm": 2.0, "train/tokens": 9}
    heldout = {"step": 3, "epoch": 0.5, "split": "heldout", "positive_label": "a", "f1": 0.5, "seconds": 1.0}
    assert metrics_of(heldout) == {"eval/f1": 0.5}
