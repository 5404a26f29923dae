"""A fine-tuning run that is killed and resumed is the one that was never disturbed, to the last bit."""

from __future__ import annotations

import json
import shutil
import signal
import time
from pathlib import Path
from typing import Any

import pytest

from bertcli.system import files as system_files
from bertcli.system.errors import UserError
from bertcli.training import finetuning
from tests.finetunes import Killed, kill_at, rows_but_times, run, spam_config, spam_files
from tests.small_runs import read_rows, start_and_signal, write_config

BEST, END = 8, 16
"""Where the dev loss is lowest, and where no better one is waited for; asserted below."""


def config(folder: Path, **sections: Any) -> dict[str, Any]:
    """With dropout, a best model before the last, and an early end between two epochs and two checkpoints."""
    return spam_config(
        folder,
        task={"metric": "loss"},
        seed=42,
        training={"epochs": 6, "learning_rate": 1.0e-2, "early_stopping": 2},
        evaluation={"every_steps": 4},
        checkpoint={"every_steps": 5},
        **sections,
    )


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return spam_files(tmp_path_factory.mktemp("files"))


@pytest.fixture(scope="module")
def undisturbed(files: Path) -> Path:
    run(config(files))
    heldout = read_rows(files / "run" / "metrics.jsonl", "heldout")
    assert [row["step"] for row in heldout] == [4, BEST, 12, END]
    assert min(heldout, key=lambda row: row["loss"])["step"] == BEST
    return files / "run"


@pytest.fixture
def own(files: Path, tmp_path: Path) -> dict[str, Any]:
    return config(files, output_dir=str(tmp_path / "run"))


def assert_same(run: Path, undisturbed: Path) -> None:
    assert rows_but_times(run / "metrics.jsonl") == rows_but_times(undisturbed / "metrics.jsonl")
    for name in (
        "model/model.safetensors",
        "model/README.md",
        "checkpoints/best/model.safetensors",
        f"checkpoints/step-{END:08d}/model/model.safetensors",
        f"checkpoints/step-{END:08d}/optimizer.safetensors",
    ):
        assert (run / name).read_bytes() == (undisturbed / name).read_bytes(), name


@pytest.mark.parametrize(
    "points",
    [
        # before any checkpoint; an evaluation without its model; one without its checkpoint; the early end
        [("train", 3), ("heldout", 8), ("best", 8), ("rename", 10), ("train", 11), ("heldout", END)],
        # the best model saved, and lost to none; a checkpoint begun; the end but for its checkpoint
        [("best", 4), ("save", 5), ("train", 7), ("best", 12), ("rename", 15), ("save", END)],
    ],
)
def test_killed_anywhere_it_ends_as_the_undisturbed_one(
    own: dict[str, Any], undisturbed: Path, points: list[tuple[str, int]], capsys: pytest.CaptureFixture[str]
) -> None:
    for point, step in points:
        with pytest.MonkeyPatch.context() as patch:
            kill_at(patch, point, step)
            with pytest.raises(Killed):
                run(own, resume=True)
    capsys.readouterr()
    done = run(own, resume=True)
    assert "resuming from" in capsys.readouterr().err
    assert_same(Path(own["output_dir"]), undisturbed)
    assert done.scores is not None
    assert done.scores.loss == read_rows(undisturbed / "metrics.jsonl", "heldout")[1]["loss"]


def test_an_error_leaves_no_checkpoint_half_written(own: dict[str, Any]) -> None:
    """The folder's lock is free after it, so another run may take the folder at once."""
    rename = system_files.os.rename

    def rename_late(source: Path, target: Path) -> None:
        time.sleep(0.2 if Path(target).name.startswith("step-") else 0)
        rename(source, target)

    with pytest.MonkeyPatch.context() as patch:
        kill_at(patch, "train", 6)
        patch.setattr(system_files.os, "rename", rename_late)
        with pytest.raises(Killed):
            run(own)
        written = {path.name for path in (Path(own["output_dir"]) / "checkpoints").iterdir()}
    assert written == {"best", "step-00000005"}


def test_a_real_kill_and_a_signal_that_saves_first(
    own: dict[str, Any], undisturbed: Path, tmp_path: Path
) -> None:
    folder = Path(own["output_dir"])
    path = write_config(tmp_path / "config.yaml", own)
    assert start_and_signal("finetune", path, folder, 7, signal.SIGKILL) == -signal.SIGKILL
    assert start_and_signal("finetune", path, folder, 11, signal.SIGTERM) == 143
    newest = max((folder / "checkpoints").glob("step-*"))
    state = json.loads((newest / "state.json").read_text())
    assert state["step"] == read_rows(folder / "metrics.jsonl", "train")[-1]["step"]  # no step was lost
    run(own, resume=True)
    assert_same(folder, undisturbed)


def test_an_evaluation_broken_off_by_a_signal_comes_first_when_the_run_goes_on(
    own: dict[str, Any], undisturbed: Path
) -> None:
    metrics, whole = Path(own["output_dir"]) / "metrics.jsonl", finetuning.evaluate_task
    for step in (4, BEST, 12, END):

        def evaluate_or_hear(*arguments: Any, at: int = step) -> Any:
            if read_rows(metrics)[-1]["step"] == at:
                signal.raise_signal(signal.SIGTERM)
            return whole(*arguments)

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(finetuning.Finetuning, "check_metric", lambda self: None)  # evaluates as well
            patch.setattr(finetuning, "evaluate_task", evaluate_or_hear)
            with pytest.raises(SystemExit) as end:
                run(own, resume=True)
        assert end.value.code == 128 + signal.SIGTERM
        last = read_rows(metrics)[-1]
        assert (last["split"], last["step"]) == ("train", step)
    run(own, resume=True)
    assert_same(Path(own["output_dir"]), undisturbed)


def test_a_finished_run_says_so_and_keeps_its_model(
    own: dict[str, Any], undisturbed: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = Path(own["output_dir"])
    shutil.copytree(undisturbed, folder)
    text = (folder / "config.yaml").read_text()
    (folder / "config.yaml").write_text(text.replace(str(undisturbed), str(folder)))
    done = run(own, resume=True)
    said = capsys.readouterr().err
    assert f"{folder} is finished: stopped early at step {END} of 36\n" in said
    assert f"best by loss: step {BEST}\n" in said
    assert done.model == folder / "model"
    assert_same(folder, undisturbed)


def test_epochs_may_grow(files: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    own = spam_config(files, output_dir=str(tmp_path / "run"), training={"epochs": 0.5})
    run(own)
    before = (tmp_path / "run" / "model" / "model.safetensors").read_bytes()
    run(own, resume=True)
    assert f"{tmp_path / 'run'} is finished: 3 of 3 steps\n" in capsys.readouterr().err
    assert (tmp_path / "run" / "model" / "model.safetensors").read_bytes() == before
    own["training"]["epochs"] = 1
    run(own, resume=True)
    assert "resume: training.epochs changes from 0.5 to 1.0" in capsys.readouterr().err
    steps = [row["step"] for row in read_rows(tmp_path / "run" / "metrics.jsonl", "train")]
    assert steps == [1, 2, 3, 4, 5, 6]


def test_no_row_is_missed_where_rows_were_rare_until_now(
    own: dict[str, Any], capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        kill_at(patch, "heldout", 8)
        with pytest.raises(Killed):
            run(own | {"logging": {"every_steps": 50}})
    run(own | {"logging": {"every_steps": 2}}, resume=True)
    said = capsys.readouterr().err
    assert "resume: logging.every_steps changes from 50 to 2" in said
    assert "are lost" not in said


@pytest.mark.parametrize(
    ("section", "values", "message"),
    [
        ("task", {"max_length": 16}, "task.max_length: 32 in the run, 16 now"),
        (
            "task",
            {"class_weights": {"ham": 1, "spam": 2}},
            "task.class_weights.ham: null in the run, 1.0 now",
        ),
        ("training", {"freeze_layers": 1}, "training.freeze_layers: 0 in the run, 1 now"),
    ],
)
def test_what_shapes_the_result_may_not_change(
    own: dict[str, Any], undisturbed: Path, section: str, values: dict[str, Any], message: str
) -> None:
    own["output_dir"] = str(undisturbed)
    own[section] |= values
    with pytest.raises(UserError, match=f"cannot resume: the config differs(?s:.*){message}"):
        run(own, resume=True)
