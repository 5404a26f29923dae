"""A student of a fine-tuned teacher, with some of its layers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch

from bertcli.folders.task_folder import load_task_folder
from bertcli.system.errors import UserError
from bertcli.tasks.regression import Regression
from bertcli.training.task_models import trained_task
from tests.finetunes import Killed, checked, run, spam_config, spam_files
from tests.folders.folders import SETTINGS, saved_task, tiny_tokenizer
from tests.small_runs import read_rows


@pytest.fixture(scope="module")
def teacher(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with spam files and a teacher of two layers in `run`."""
    folder = spam_files(tmp_path_factory.mktemp("teacher"))
    run(spam_config(folder, training={"epochs": 1}))
    return folder


def student(teacher: Path, out: Path, **sections: Any) -> dict[str, Any]:
    """A config of a student of one layer, beginning with the teacher's."""
    training = {"epochs": 1, "keep_layers": 1} | sections.pop("training", {})
    given = {"teacher": str(teacher / "run")} | sections.pop("distillation", {})
    config = spam_config(teacher, training=training, distillation=given, **sections)
    return config | {"output_dir": str(out), "model": str(teacher / "run")}


def test_a_student_has_fewer_layers_and_both_losses(teacher: Path, tmp_path: Path) -> None:
    run(student(teacher, tmp_path / "run"))
    model = load_task_folder(tmp_path / "run" / "model").model
    assert (model.architecture.layers, len(model.body.encoder.layers)) == (1, 1)
    rows = read_rows(tmp_path / "run" / "metrics.jsonl", "train")
    for row in rows:
        assert row["loss"] == pytest.approx(row["teacher_loss"] + row["labels_loss"])
    card = (tmp_path / "run" / "model" / "README.md").read_text()
    assert "| layers | 1 of the model's |\n" in card
    assert "| teacher | run, temperature 2; weights: its answers 1, labels 1 |\n" in card


def test_weights_decide_what_is_learned(teacher: Path, tmp_path: Path) -> None:
    """With the weight 0 of the teacher, as without one."""
    alone = student(teacher, tmp_path / "alone")
    del alone["distillation"]
    run(alone)
    run(student(teacher, tmp_path / "unheard", distillation={"weights": [0.0, 1.0]}))
    run(student(teacher, tmp_path / "heard"))
    names = ("alone", "unheard", "heard")
    weights = [load_task_folder(tmp_path / name / "model").model.state_dict() for name in names]
    assert all(torch.equal(each, weights[1][name]) for name, each in weights[0].items())
    assert any(not torch.equal(each, weights[2][name]) for name, each in weights[0].items())


def test_a_killed_student_ends_as_an_undisturbed_one(
    teacher: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from bertcli.training.checkpoint import CheckpointWriter

    sections = {"checkpoint": {"every_steps": 2}}
    run(student(teacher, tmp_path / "straight", **sections))
    save, saved = CheckpointWriter.save, []

    def save_and_die(self: CheckpointWriter, state: Any) -> None:
        save(self, state)
        saved.append(state.step)
        if len(saved) == 2:
            self.finish()
            raise Killed

    with monkeypatch.context() as patched:
        patched.setattr(CheckpointWriter, "save", save_and_die)
        with pytest.raises(Killed):
            run(student(teacher, tmp_path / "killed", **sections))
    run(student(teacher, tmp_path / "killed", **sections), resume=True)
    straight, killed = (tmp_path / name / "model" / "model.safetensors" for name in ("straight", "killed"))
    assert straight.read_bytes() == killed.read_bytes()


def refused(config: dict[str, Any]) -> str:
    with pytest.raises(UserError) as error:
        run(config)
    return str(error.value)


def test_a_teacher_of_something_else_is_refused(teacher: Path, tmp_path: Path) -> None:
    config = student(teacher, tmp_path / "run")
    other = config | {"task": config["task"] | {"type": "regression", "label": 0}}
    train = (teacher / "train.tsv").read_text().replace("ham\t", "1\t").replace("spam\t", "2\t")
    (tmp_path / "numbers.tsv").write_text(train.replace("label\t", "value\t"))
    other["task"] |= {"train": str(tmp_path / "numbers.tsv"), "dev": None, "label": "value"}
    assert (
        "has another task (classification, answers: softmax, labels: ham, spam) than this run (regression"
        in refused(other)
    )
    no_teacher = student(teacher, tmp_path / "run", distillation={"teacher": str(teacher / "bert")})
    assert "fine-tuned" in refused(no_teacher)
    assert "keep_layers: 3, but the model has only 2 layers" in refused(
        student(teacher, tmp_path / "run", training={"keep_layers": 3})
    )


def test_a_teacher_of_values_cannot_teach_probabilities(teacher: Path, tmp_path: Path) -> None:
    saved_task(tmp_path, "regression")
    config = checked(student(teacher, tmp_path / "run", distillation={"teacher": str(tmp_path)}))
    task = Regression(SETTINGS["regression"].model_copy(update={"sigmoid": True}))
    with pytest.raises(
        UserError, match=r"has another task \(regression, answers: value, .* answers: sigmoid"
    ):
        trained_task(config, task, tiny_tokenizer())


def test_a_teacher_with_another_tokenizer_is_refused(teacher: Path, tmp_path: Path) -> None:
    from shutil import copytree

    other = copytree(teacher / "run" / "model", tmp_path / "other")
    path = other / "vocab.txt"
    pieces = path.read_text().splitlines()
    pieces[-1], pieces[-2] = pieces[-2], pieces[-1]
    path.write_text("\n".join(pieces) + "\n")
    (other / "tokenizer.json").unlink(missing_ok=True)
    assert "has another tokenizer" in refused(
        student(teacher, tmp_path / "run", distillation={"teacher": str(other)})
    )
