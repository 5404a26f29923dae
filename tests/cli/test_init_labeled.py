"""`bertcli init` for labeled files of any layout: the config that it writes is one that runs."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from bertcli.config.finetune import FinetuneConfig
from bertcli.config.load import load_either_config
from bertcli.config.schema import PretrainConfig
from bertcli.config.yaml_text import parse_yaml
from tests.advice.init.files import comments, messages, speed, write_csv, write_jsonl
from tests.finetunes import write_model

pytestmark = pytest.mark.usefixtures("init_here")


def spam(path: Path, number: int = 80) -> Path:
    return write_csv(path, [("label", "message"), *messages(number)], "\t" if path.suffix == ".tsv" else ",")


def test_a_table_gets_a_config_that_passes_check_data_and_runs(run_bertcli, tmp_path: Path) -> None:
    spam(tmp_path / "spam.tsv")
    write_model(tmp_path / "bert")
    code, out, err = run_bertcli("init", "spam.tsv", "--model", "bert", "--output", "my spam.yaml")
    assert (code, out) == (0, "my spam.yaml\n"), err
    assert "  train: 64 rows; ham 32 (50.0%), spam 32 (50.0%)" in err
    assert "note: the run ends sooner; of so many rows init takes no more epochs" in err
    assert err.endswith("written: my spam.yaml; next: bertcli finetune 'my spam.yaml'\n")
    config = load_either_config(tmp_path / "my spam.yaml")
    assert isinstance(config, FinetuneConfig)
    assert (config.model, config.task.label, config.training.epochs) == ("bert", "label", 20)
    assert run_bertcli("check-data", "my spam.yaml")[0] == 0
    code, out, err = run_bertcli("finetune", "my spam.yaml", "--set", "training.epochs=1")
    assert (code, out) == (0, "runs/spam/model\n"), err


def test_without_a_model_at_hand_no_time_is_told(run_bertcli, tmp_path: Path) -> None:
    spam(tmp_path / "spam.csv")
    code, _, err = run_bertcli("init", "spam.csv")
    assert code == 0
    assert "the time was not measured" in err
    assert "needs a network" in comments(tmp_path / "bertcli.yaml")
    value = parse_yaml((tmp_path / "bertcli.yaml").read_text(), "")
    assert value["model"] == "google-bert/bert-base-uncased"


@pytest.mark.parametrize(("number", "is_few"), [(58, True), (60, False)])
def test_few_rows_of_a_label_are_those_of_the_file(
    run_bertcli, tmp_path: Path, number: int, is_few: bool
) -> None:
    spam(tmp_path / "spam.csv", number)
    assert run_bertcli("init", "spam.csv")[0] == 0
    task = parse_yaml((tmp_path / "bertcli.yaml").read_text(), "")["task"]
    assert (task["dev_fraction"], task.get("few_shot", False)) == (0.2, is_few)
    assert ("the label 'ham' has 29 rows" in comments(tmp_path / "bertcli.yaml")) == is_few


def test_a_file_for_evaluation_adds_no_rows_of_a_label(run_bertcli, tmp_path: Path) -> None:
    spam(tmp_path / "train.csv", 58)
    spam(tmp_path / "dev.csv")
    assert run_bertcli("init", "train.csv")[0] == 0
    assert parse_yaml((tmp_path / "bertcli.yaml").read_text(), "")["task"]["few_shot"] is True


def test_what_is_left_out_of_labeled_files_is_said_with_number_and_reason(
    run_bertcli, tmp_path: Path
) -> None:
    rows = [("label", "message"), *messages(40)]
    write_csv(tmp_path / "train.csv", [*rows, ("ham", ""), ("ham", " "), ("ham", "one", "too many")])
    write_csv(tmp_path / "dev.csv", [*rows[:9], ("ham", "")])
    write_csv(tmp_path / "test.csv", rows)
    code, _, err = run_bertcli("init", "train.csv")
    assert code == 0, err
    assert "train.csv: left out 3 of 43 rows, which cannot be used:\n  train.csv, line 42: the text" in err
    assert "  train.csv, line 44: 3 fields, not 2" in err
    assert "dev.csv: left out 1 of 9 rows, which cannot be used:\n  dev.csv, line 10: the text is" in err
    assert "test.csv is left for bertcli evaluate\n" in err
    assert "3 of 43 rows, which cannot be used: train.csv, line 42" in " ".join(
        comments(tmp_path / "bertcli.yaml").split()
    )
    write_csv(tmp_path / "train.csv", rows)  # rows of the other file alone are bad
    assert run_bertcli("init", "train.csv", "--output", "b.yaml")[0] == 0
    assert parse_yaml((tmp_path / "b.yaml").read_text(), "")["task"]["skip_bad"] is True
    write_csv(tmp_path / "dev.csv", [("label", "words"), *messages(40)])
    _, _, err = run_bertcli("init", "train.csv", "--output", "c.yaml")
    assert "left out: dev.csv cannot be used: task.text: no column 'message'" in err


def test_a_named_file_that_is_not_used_is_said(run_bertcli, tmp_path: Path) -> None:
    for name in ("train", "dev", "valid", "more"):
        spam(tmp_path / f"{name}.csv")
    _, _, err = run_bertcli("init", "train.csv", "dev.csv", "valid.csv", "more.csv")
    assert "left out: valid.csv, more.csv: a run learns from one file and is evaluated on one\n" in err


def test_a_run_that_exists_keeps_its_folder(run_bertcli, tmp_path: Path) -> None:
    (tmp_path / "runs" / "spam").mkdir(parents=True)
    spam(tmp_path / "spam.csv")
    assert run_bertcli("init", "spam.csv")[0] == 0
    assert load_either_config(tmp_path / "bertcli.yaml").output_dir == "runs/spam-2"


def test_json_lines_are_taken_by_their_labels_or_as_said(run_bertcli, tmp_path: Path) -> None:
    rows = [{"text": f"{text} It rains.", "label": label} for label, text in messages(200)]
    write_jsonl(tmp_path / "a.jsonl", rows)
    _, _, err = run_bertcli("init", "a.jsonl")
    assert "taken as labeled rows to fine-tune on; for a corpus to pretrain on: --for pretrain" in err
    assert isinstance(load_either_config(tmp_path / "bertcli.yaml"), FinetuneConfig)
    options = ("--for", "pretrain", "--output", "b.yaml", "--minutes", "0.1")
    assert run_bertcli("init", "a.jsonl", *options)[0] == 0
    config = load_either_config(tmp_path / "b.yaml")
    assert isinstance(config, PretrainConfig)
    assert (config.corpus.format, config.corpus.text_key) == ("jsonl", "text")


def _json_list(path: Path) -> None:
    path.write_text(json.dumps([{"text": text, "label": label} for label, text in messages(80)], indent=1))


def _fasttext(path: Path) -> None:
    path.write_text("".join(f"__label__{label} {text}\n" for label, text in messages(80)))


def _trec(path: Path) -> None:
    path.write_text("".join(f"{label.upper()}:x {text}\n" for label, text in messages(80)))


def _ticks(path: Path) -> None:
    rows = [(text, "x" * (n % 2), "x" * (n % 3 == 0)) for n, (_, text) in enumerate(messages(80))]
    write_csv(path, [("words", "toxic", "insult"), *rows])


def _separated(separator: str) -> Callable[[Path], object]:
    return lambda path: write_csv(path, [("kind", "words, or more"), *messages(80)], separator)


@pytest.mark.parametrize(
    ("name", "write", "task"),
    [
        ("a.json", _json_list, {"text": "text", "label": "label", "format": "auto"}),
        ("a.txt", _fasttext, {"text": "text", "label": "label", "format": "fasttext"}),
        ("a.label", _trec, {"text": "text", "label": "label", "format": "trec"}),
        ("a.csv", _separated(";"), {"text": "words, or more", "label": "kind", "separator": ";"}),
        ("a.csv", _separated("|"), {"text": "words, or more", "label": "kind", "separator": "|"}),
        (
            "a.csv",
            _ticks,
            {"text": "words", "label": ["toxic", "insult"], "ticks": True, "multi_label": True},
        ),
        ("a.txt", _separated("|"), {"format": "csv", "label": "kind", "separator": "|"}),
    ],
)
def test_layouts_of_labeled_files_pass_check_data(
    run_bertcli, tmp_path: Path, name: str, write: Any, task: dict[str, Any]
) -> None:
    write(tmp_path / name)
    write_model(tmp_path / "bert")
    code, _, err = run_bertcli("init", name, "--model", "bert")
    assert code == 0, err
    assert ("if it is plain text: --for pretrain" in err) == (name in ("a.txt", "a.label"))
    config = load_either_config(tmp_path / "bertcli.yaml")
    assert isinstance(config, FinetuneConfig)
    assert {key: getattr(config.task, key) for key in task} == task
    code, _, err = run_bertcli("check-data", "bertcli.yaml")
    assert code == 0, err


def test_less_than_an_epoch_is_said_with_the_time_of_one(run_bertcli, tmp_path: Path, monkeypatch) -> None:
    spam(tmp_path / "spam.csv", 600)
    write_model(tmp_path / "bert")
    monkeypatch.setattr("bertcli.advice.init.finetuning.probe", lambda plan, seconds: speed(1.0, 32 * 16))
    code, _, err = run_bertcli("init", "spam.csv", "--model", "bert", "--minutes", "0.25")
    assert code == 0, err
    assert "left aside" not in err
    said = "of the rows are read, once; a run that reads all of them takes "
    assert said in err
    assert said in " ".join(comments(tmp_path / "bertcli.yaml").split())
    assert "--minutes 1)" in err


@pytest.mark.parametrize(("epochs", "said"), [(1.0, "for 1 epoch, of"), (2.0, "for 2 epochs, of")])
def test_one_epoch_is_no_plural(run_bertcli, tmp_path: Path, monkeypatch, epochs: float, said: str) -> None:
    spam(tmp_path / "spam.csv")
    write_model(tmp_path / "bert")
    monkeypatch.setattr("bertcli.advice.init.finetuning._descending", lambda most: [epochs])
    monkeypatch.setattr("bertcli.advice.init.finetuning.probe", lambda plan, seconds: speed(0.01, 32 * 16))
    code, _, err = run_bertcli("init", "spam.csv", "--model", "bert")
    assert (code, said in err) == (0, True), err


def test_labels_that_cannot_be_read_are_named_and_others_that_are_not_read(
    run_bertcli, tmp_path: Path
) -> None:
    choices = [{"result": [{"type": "choices", "value": {"choices": ["spam"]}}]}]
    rows = [{"text": text} for _, text in messages(40)]
    tasks = [{"data": row, "annotations": choices, "note": row["text"]} for row in rows]
    write_jsonl(tmp_path / "choices.jsonl", tasks)
    code, out, err = run_bertcli("init", "choices.jsonl")
    assert (code, out) == (2, "")
    assert "is an export of Label Studio without spans of a text, which cannot be read yet" in err
    assert "To pretrain on the texts alone: --for pretrain" in err
    write_jsonl(tmp_path / "kinds.jsonl", [row | {"label": {"spam": "sure"}} for row in rows])
    _, _, err = run_bertcli("init", "kinds.jsonl")
    assert "taken as a corpus to pretrain on, without label, which may be labels; for labeled rows" in err
