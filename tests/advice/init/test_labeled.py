"""Rows decide on the files, on what is left out, and on the length of a row."""

from __future__ import annotations

from pathlib import Path

import pytest

from bertcli.advice.init.finetuning import choose_model
from bertcli.advice.init.labeled import LabeledLook, few_shot_keys, length_keys, look_at_rows
from bertcli.system.errors import UserError
from tests.advice.init.files import messages, write_csv
from tests.finetunes import write_model

TASK = {"type": "classification", "text": "message", "label": "label"}
HEADER = ("label", "message")


def look(path: Path, dev: Path | None = None, test: tuple[str, ...] = ()) -> LabeledLook:
    return look_at_rows(str(path), dev and str(dev), TASK, test=test, report=print)


def test_a_share_is_split_off_where_no_file_is_beside(tmp_path: Path) -> None:
    found = look(write_csv(tmp_path / "a.csv", [HEADER, *messages(60)]), test=("test.csv",))
    assert found.keys["dev_fraction"] == 0.2
    assert "test.csv is left for bertcli evaluate" in found.comments["dev_fraction"]
    assert found.lines[0] == "train: 48 rows; ham 24 (50.0%), spam 24 (50.0%)"


def test_a_file_for_evaluation_is_taken(tmp_path: Path) -> None:
    dev = write_csv(tmp_path / "dev.csv", [HEADER, *messages(20)])
    found = look(write_csv(tmp_path / "a.csv", [HEADER, *messages(60)]), dev)
    assert found.keys["dev"] == str(dev)
    assert "dev_fraction" not in found.keys


def test_a_file_with_other_labels_is_not_taken_and_said(tmp_path: Path) -> None:
    dev = write_csv(tmp_path / "dev.csv", [HEADER, ("maybe", "Is it a prize?")])
    found = look(write_csv(tmp_path / "a.csv", [HEADER, *messages(60)]), dev)
    assert "cannot be used: labels that the model does not learn" in found.comments["dev_fraction"]


def test_bad_rows_are_left_out_and_said(tmp_path: Path) -> None:
    path = write_csv(tmp_path / "a.csv", [HEADER, *messages(60), ("ham", "one", "too many")])
    found = look(path)
    assert found.keys["skip_bad"] is True
    assert "3 fields, not 2" in found.comments["skip_bad"]


def test_a_single_label_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="every row has the label 'ham'"):
        look(write_csv(tmp_path / "a.csv", [HEADER, *[("ham", f"Message {i}") for i in range(9)]]))


def test_two_rows_are_too_few_to_split(tmp_path: Path) -> None:
    found = look(write_csv(tmp_path / "a.csv", [HEADER, *messages(2)]))
    assert "too few to split some off: nothing is evaluated" in found.comments["train"]
    assert not {"dev", "dev_fraction"} & found.keys.keys()


def test_rows_are_as_long_as_almost_all_texts_and_the_model_allow(tmp_path: Path) -> None:
    rows = look(write_csv(tmp_path / "a.csv", [HEADER, *messages(60)])).train
    keys, comments = length_keys(rows, "classification", None)
    assert keys == {"max_length": 16}
    assert "estimated by words" in comments["max_length"]
    keys, comments = length_keys(rows, "classification", write_model(tmp_path / "bert"))
    assert keys == {"max_length": 48}  # of letters, in this vocabulary
    long = look(write_csv(tmp_path / "b.csv", [HEADER, *((n, f"{t} " * 50) for n, t in messages(30))])).train
    keys, comments = length_keys(long, "classification", tmp_path / "bert")
    assert keys == {"max_length": 64, "windows": "mean", "doc_stride": 16}  # its positions
    assert "longer ones are read in windows" in comments["max_length"]
    assert comments["windows"] == "100% of the rows have more tokens; first would cut them"
    few = [*rows[:40], *long[:2]]  # a twentieth is cut, which is no tenth
    keys, comments = length_keys(few, "classification", tmp_path / "bert")
    assert keys == {"max_length": 64}
    assert "longer ones are cut" in comments["max_length"]
    assert length_keys(long, "question-answering", None)[0] == {"max_length": 384, "doc_stride": 96}


def test_the_model_is_a_published_one_for_the_language(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert choose_model(None, "en", "classification").name == "google-bert/bert-base-uncased"
    assert choose_model(None, "en", "token-classification").name == "google-bert/bert-base-cased"
    assert choose_model(None, "zh", "classification").name == "google-bert/bert-base-chinese"
    other = choose_model(None, "fi", "classification")
    assert other.name == "FacebookAI/xlm-roberta-base"
    assert other.folder is None
    assert "which needs a network" in other.comment


def test_a_finished_run_is_named_beside_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    write_model(tmp_path / "runs" / "mine" / "model")
    assert "or a model of yours: runs/mine/model" in choose_model(None, "en", "classification").comment


def test_a_given_model_is_taken(tmp_path: Path) -> None:
    folder = write_model(tmp_path / "bert")
    assert choose_model(str(folder), "en", "classification").folder == folder
    with pytest.raises(UserError, match="no such folder"):
        choose_model(str(tmp_path / "nowhere"), "en", "classification")


@pytest.mark.parametrize(
    ("rows", "task", "chosen"),
    [
        (58, {}, True),
        (60, {}, False),
        (58, {"multi_label": True}, False),
    ],
)
def test_few_rows_of_a_label_are_compared_with_each_other_first(
    tmp_path: Path, rows: int, task: dict[str, bool], chosen: bool
) -> None:
    path = write_csv(tmp_path / "a.csv", [HEADER, *messages(rows)])
    examples = look_at_rows(str(path), str(path), TASK | task, test=(), report=print).train
    keys, comments = few_shot_keys(examples, TASK | task)
    assert keys == ({"few_shot": True} if chosen else {})
    assert not chosen or "the label 'ham' has 29 rows" in comments["few_shot"]
    many = [*examples, *examples] * 20  # a rare label among many rows is no case of few rows
    assert few_shot_keys([*many, *many], TASK | task) == ({}, {})
