"""What a fine-tuning run learns from, compared on a resume."""

from __future__ import annotations

from pathlib import Path

import pytest

from bertcli.errors import UserError
from bertcli.runs.task_identity import check_same_data, task_identity
from tests.finetunes import checked, spam_config, write_model, write_spam, write_spam_split

LABELS = ("ham", "spam")


@pytest.fixture
def files(tmp_path: Path) -> Path:
    return write_spam_split(tmp_path)


def test_a_resume_wants_the_same_labels_and_files(files: Path) -> None:
    config, note = checked(spam_config(files)), files / "data.json"
    before = task_identity(config, LABELS)
    check_same_data(before, task_identity(config, LABELS), note)
    with pytest.raises(
        UserError, match="the labels are ham, spam, eggs now, and were ham, spam at the start"
    ):
        check_same_data(before, task_identity(config, (*LABELS, "eggs")), note)
    with pytest.raises(UserError, match="the labels are none now"):
        check_same_data(before, task_identity(config, ()), note)
    write_spam(files / "dev.tsv", rows=21, skip=60)
    with pytest.raises(
        UserError, match=rf"cannot resume: {files}/dev.tsv changed since the start of the run"
    ):
        check_same_data(before, task_identity(config, LABELS), note)
    write_spam(files / "dev.tsv", rows=20, skip=60)
    check_same_data(before, task_identity(config, LABELS), note)


def test_a_resume_wants_the_same_model_folder(files: Path) -> None:
    model = write_model(files / "bert")
    config, note = checked(spam_config(files)), files / "data.json"
    before = task_identity(config, LABELS)
    check_same_data(before, task_identity(config, LABELS), note)
    with open(model / "model.safetensors", "rb+") as file:
        file.seek(-1, 2)
        file.write(b"?")
    with pytest.raises(UserError, match=rf"cannot resume: {model}/model.safetensors changed since the start"):
        check_same_data(before, task_identity(config, LABELS), note)
