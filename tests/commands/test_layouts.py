"""Layouts of labeled files that a config names, and that `predict` and `evaluate` then read by themselves."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.finetunes import spam_config, write_model
from tests.small_runs import write_config

MESSAGES = [
    ("ham", "ok see you at home; then"),
    ("spam", "you have won a prize"),
    ("ham", "i am late"),
    ("spam", "call now to claim it"),
]


@pytest.fixture
def finetuned(run_bertcli, tmp_path: Path):
    """Fine-tunes a model for a step on files of these keys, in `tmp_path / "run"`; returns what was said."""

    def run(**task: Any) -> str:
        write_model(tmp_path / "bert")
        values = spam_config(tmp_path, training={"epochs": 0.3})
        values["task"] = {"type": "classification", "max_length": 32} | task
        code, _, err = run_bertcli("finetune", write_config(tmp_path / "config.yaml", values))
        assert code == 0, err
        return err

    return run


def answered(run_bertcli, *arguments: object) -> tuple[list[str], str]:
    """The texts of the rows that were answered, and what was said."""
    code, out, err = run_bertcli("predict", *arguments)
    assert code == 0, err
    return [json.loads(line)["message"] for line in out.splitlines()], err


def test_a_separator_is_saved_with_the_model(run_bertcli, finetuned, tmp_path: Path) -> None:
    path = tmp_path / "train.psv"
    path.write_text("label|message\n" + "".join(f"{label}|{text}\n" for label, text in MESSAGES))
    said = finetuned(train=str(path), dev=str(path), text="message", label="label", separator="|")
    assert "train: 4 rows; ham 2 (50.0%), spam 2 (50.0%)\n" in said
    texts = [text for _, text in MESSAGES]
    assert answered(run_bertcli, tmp_path / "run", "--input", path) == (texts, "")
    assert run_bertcli("evaluate", tmp_path / "run", "--data", path)[0] == 0
    tabs = tmp_path / "tabs.tsv"
    tabs.write_text(path.read_text().replace("|", "\t"))
    assert answered(run_bertcli, tmp_path / "run", "--input", tabs, "--separator", r"\t")[0] == texts
    code, out, _ = run_bertcli(
        "embed", tmp_path / "bert", "--input", path, "--text", "message", "--separator", "|"
    )
    assert (code, len(out.splitlines())) == (0, 4)
    for arguments, problem in (
        (["--input", tabs], "the columns: label\tmessage (separated by '|'; if the file has no header"),
        (
            ["--input", tabs, "--separator", "tab"],
            "separator: string should have at most 1 character, got 'tab'",
        ),
    ):
        code, out, err = run_bertcli("predict", tmp_path / "run", *arguments)
        assert (code, out) == (2, "")
        assert problem in err


def test_fields_beyond_the_header_are_ignored_if_asked(run_bertcli, finetuned, tmp_path: Path) -> None:
    path = tmp_path / "train.csv"
    rows = "".join(f'{label},"{text}",\n' for label, text in MESSAGES)
    path.write_text(f"label,message\n{rows}")
    note = f"{path}: ignored fields beyond the header's 2 in 4 rows, first in line 2; all of them are empty\n"
    task = {"train": str(path), "text": "message", "label": "label"}
    assert note in finetuned(**task, ignore_extra_fields=True)
    texts = [text for _, text in MESSAGES]
    assert answered(run_bertcli, tmp_path / "run", "--input", path) == (texts, note)
    code, _, err = run_bertcli("evaluate", tmp_path / "run", "--data", path)
    assert (code, err) == (0, note)
    code, _, err = run_bertcli("embed", tmp_path / "bert", "--input", path, "--text", "message")
    assert (code, "set task.ignore_extra_fields: true" in err) == (2, True)
    asked = ["--text", "message", "--ignore-extra-fields"]
    code, out, err = run_bertcli("embed", tmp_path / "bert", "--input", path, *asked)
    assert (code, len(out.splitlines()), err) == (0, 4, note)
