"""Layouts of labeled files that a config names, and that `predict` and `evaluate` then read by themselves."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import pytest

from tests.finetunes import spam_config, write_model
from tests.small_runs import run_warm, write_config

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
    assert (code, err.endswith(f"\n{note}")) == (0, True)
    code, _, err = run_bertcli("embed", tmp_path / "bert", "--input", path, "--text", "message")
    assert (code, "are to be ignored, give --ignore-extra-fields\n" in err) == (2, True)
    asked = ["--text", "message", "--ignore-extra-fields"]
    code, out, err = run_bertcli("embed", tmp_path / "bert", "--input", path, *asked)
    assert (code, len(out.splitlines()), err) == (0, 4, note)


def test_lines_of_fasttext_are_learned_from_and_answered(run_bertcli, finetuned, tmp_path: Path) -> None:
    path, bare = tmp_path / "train.txt", tmp_path / "bare.txt"
    path.write_text("".join(f"__label__{label} {text}\n" for label, text in MESSAGES))
    bare.write_text("".join(f"{text}\n" for _, text in MESSAGES))
    said = finetuned(train=str(path), dev=str(path), format="fasttext")
    assert "train: 4 rows; ham 2 (50.0%), spam 2 (50.0%)\n" in said
    code, with_labels, err = run_bertcli("predict", tmp_path / "run", "--input", path)
    assert (code, err) == (0, "")
    answers = [json.loads(line) for line in with_labels.splitlines()]
    assert [(row["given_label"], row["text"]) for row in answers] == MESSAGES
    _, without, _ = run_bertcli("predict", tmp_path / "run", "--input", bare)
    answered_bare = [json.loads(line) for line in without.splitlines()]
    assert [{"given_label": label} for label, _ in MESSAGES] == [
        {key: row[key] for key in row.keys() - bare_row.keys()}
        for row, bare_row in zip(answers, answered_bare, strict=True)
    ]
    with open(path) as lines:
        piped = run_warm("predict", tmp_path / "run", stdin=lines)
    assert piped.stdout == without
    code, out, _ = run_bertcli("evaluate", tmp_path / "run", "--data", path, "--json")
    assert (code, json.loads(out)["rows"]) == (0, 4)


def test_several_labels_of_fasttext_are_learned(run_bertcli, finetuned, tmp_path: Path) -> None:
    path = tmp_path / "train.txt"
    path.write_text("__label__a __label__b one\n__label__b two\nthree\n")
    said = finetuned(train=str(path), format="fasttext", multi_label=True)
    assert "train: 3 rows; b 2 (66.7%), a 1 (33.3%)\n" in said
    code, out, _ = run_bertcli("predict", tmp_path / "run", "--input", path, "--csv")
    _, *rows = csv.reader(out.splitlines())
    assert (code, [row[:2] for row in rows]) == (0, [["a,b", "one"], ["b", "two"], ["", "three"]])


@pytest.mark.parametrize(
    ("label", "labels"), [("label", ["DESC", "HUM"]), ("fine", ["DESC:def", "DESC:manner", "HUM:ind"])]
)
def test_the_coarse_labels_of_trec_are_learned_or_the_fine_ones(
    run_bertcli, finetuned, tmp_path: Path, label: str, labels: list[str]
) -> None:
    path, bare = tmp_path / "train_5500.label", tmp_path / "bare.txt"
    lines = ["DESC:manner How did café begin ?", "DESC:def What is it ?", "HUM:ind Who is he ?"]
    path.write_bytes("".join(f"{line}\n" for line in lines).encode("latin-1"))
    finetuned(train=str(path), format="trec", label=label, encoding="latin-1")
    bare.write_text("How did it begin ?\nAnd: who ?\n")
    code, out, err = run_bertcli("predict", tmp_path / "run", "--input", path)
    assert (code, err) == (0, f"{path}: the lines begin with labels, as in TREC; they are not read as text\n")
    first = json.loads(out.splitlines()[0])
    assert (first["given_label"], first["fine"], first["text"]) == (
        "DESC",
        "DESC:manner",
        "How did café begin ?",
    )
    assert list(first["probabilities"]) == labels
    code, out, err = run_bertcli("predict", tmp_path / "run", "--input", bare)
    assert (code, err) == (0, "")
    assert [json.loads(line)["text"] for line in out.splitlines()] == ["How did it begin ?", "And: who ?"]


def test_a_file_of_fasttext_that_is_read_as_a_table_says_what_to_set(run_bertcli, tmp_path: Path) -> None:
    write_model(tmp_path / "bert")
    path = tmp_path / "train.txt"
    path.write_text("__label__spam win\n__label__ham so\n")
    values = spam_config(tmp_path, task={"train": str(path), "dev": None})
    code, out, err = run_bertcli("finetune", write_config(tmp_path / "config.yaml", values))
    assert (code, out) == (2, "")
    assert "this looks like a line of fastText's: set task.format: fasttext\n" in err


PAIRS = "premise\thypothesis\tgold\n"
ADVICE = {
    "json": (
        "evaluate MODELS/classification --data FILE",
        '{"premise": "a", "hypothesis": "b", "gold": "no"}\n' * 2,
        "; this looks like JSON: give --format jsonl",
    ),
    "fasttext": (
        "predict MODELS/classification --input FILE",
        "__label__no the cat\n__label__yes a dog\n",
        "; this looks like a line of fastText's: give --format fasttext",
    ),
    "vectors": (
        "embed MODELS/vectors --input FILE --text text --format tsv",
        "__label__no the cat\n__label__yes a dog\n",
        "; this looks like a line of fastText's: give --format fasttext",
    ),
    "no such column": (
        "similarity MODELS/vectors cat --input FILE --text c",
        "a\tb\nthe\tcat\n",
        ": --text: no column 'c'; the columns: a, b (separated by tabs; if the file has no header, name them "
        "in --columns)\n",
    ),
    "header": (
        "evaluate MODELS/classification --data FILE --columns premise,hypothesis,gold",
        f"{PAIRS}a\tb\tno\n",
        ": the first line is a header, the names in --columns: give --columns ''\n",
    ),
    "quotes": (
        "evaluate MODELS/classification --data FILE",
        f'{PAIRS}a\tb\tno\n"a\tb"\n',
        "; if quotes enclose fields here, give --quoting csv; mend the file, or leave such rows out with "
        "--skip-bad\n",
    ),
    "first choice": (
        "evaluate MODELS/choices --data FILE --label right",
        "story\tone\ttwo\tright\nit was\tdark\tthe cat\t2\nhe\tran\tsat\t1\n",
        "set task.first_choice: 1; else mend this row\nbertcli evaluate has no option for task.first_choice: "
        "change the file instead\n",
    ),
    "several labels": (
        "evaluate MODELS/classification --data FILE --format jsonl",
        '{"premise": "a", "hypothesis": "b", "gold": ["no", "yes"]}\n',
        "set task.multi_label: true\nbertcli evaluate has no option for task.multi_label: change the file "
        "instead\n",
    ),
}


@pytest.mark.parametrize("case", ADVICE)
def test_without_a_config_the_advice_is_an_option(
    run_bertcli, models: Path, tmp_path: Path, case: str
) -> None:
    line, content, advice = ADVICE[case]
    path = tmp_path / "rows.tsv"
    path.write_text(content)
    line = line.replace("MODELS", str(models)).replace("FILE", str(path))
    code, out, err = run_bertcli(*line.split())
    assert (code, out) == (2, "")
    assert advice in err
