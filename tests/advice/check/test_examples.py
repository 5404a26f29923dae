"""Labeled files judged before the run: what is said to fail does fail, and all of it is found at once."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from bertcli.advice.check.finetuning import LabeledCheck
from bertcli.batches.order import EpochOrder
from bertcli.folders.lengths import check_length
from bertcli.system.errors import UserError
from bertcli.tasks.data import load_labeled_data
from bertcli.tasks.data_report import figures
from bertcli.tokenizer.tokenizer import Tokenizer
from tests.finetunes import checked, spam_config, spam_files, write_spam


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return spam_files(tmp_path)


def check(folder: Path, **sections: Any) -> LabeledCheck:
    return LabeledCheck(checked(spam_config(folder, **sections)))


def fails(check: LabeledCheck) -> list[str]:
    return [finding.problem for finding in check.findings if finding.fails]


def stops(folder: Path, **sections: Any) -> str:
    """The error that ends a run before its first step."""
    config = checked(spam_config(folder, **sections))
    with pytest.raises(UserError) as error:
        start(config, folder)
    return str(error.value)


def start(config: Any, folder: Path) -> Any:
    check_length(folder / "bert", config.task.max_length, "task.max_length")
    return load_labeled_data(config, Tokenizer.load(folder / "bert"), print)


def write_rows(path: Path, *rows: str) -> None:
    path.write_text("\n".join(["label\tmessage", *rows]) + "\n")


@pytest.mark.parametrize("dev", [{}, {"dev": None, "dev_fraction": 0.2}, {"dev": None}])
def test_the_figures_are_those_of_the_run(folder: Path, dev: dict[str, Any]) -> None:
    found = check(folder, task=dev)
    config = checked(spam_config(folder, task=dev))
    data = start(config, folder)
    parts = {"train": data.train} | ({} if data.dev is None else {"dev": data.dev})
    items = {name: part.items for name, part in parts.items()}
    examples = {name: part.examples for name, part in parts.items()}
    expected = figures(examples, items, config.task.settings)
    assert found.figures == expected | {"steps_per_epoch": -(-len(data.train.items) // 16)}
    assert fails(found) == []


@pytest.mark.parametrize("fold", [1, 2])
def test_a_label_of_the_other_fold_alone_fails_neither_here_nor_in_the_run(folder: Path, fold: int) -> None:
    write_rows(folder / "train.tsv", *[f"{'ab'[n % 2]}\trow {n}" for n in range(12)], "c\tonce")
    task = {"dev": None, "class_weights": {"a": 1.0, "b": 1.0, "c": 2.0}}
    assert fails(check(folder, task=task, folds=2, fold=fold)) == []
    config = checked(spam_config(folder, task=task, folds=2, fold=fold))
    assert start(config, folder).task.labels == ("a", "b", "c")


def test_what_a_model_learns_badly_from_is_named_with_its_place(folder: Path) -> None:
    rows = [f"ham\trow {number}" for number in range(20)]
    write_rows(
        folder / "train.tsv",
        *rows,
        "ham\trow 3",
        "spam\trow 5",
        "ham\tthat\x92s a lot of letters " + "x" * 40,
    )
    write_rows(folder / "dev.tsv", "ham\trow 7", "spam\tanother one", "spam\tanother one")
    found = check(folder)
    said = {finding.problem: finding for finding in found.findings}
    train, dev = folder / "train.tsv", folder / "dev.tsv"
    assert said["2 rows of train repeat the text of another one"].places == (
        f"{train}, line 22: 'row 3', as in {train}, line 5",
        f"{train}, line 23: 'row 5', as in {train}, line 7",
    )
    assert said["1 rows of dev are in train as well: scores will be too good"].places == (
        f"{dev}, line 2: 'row 7', as in {train}, line 9",
    )
    assert said["one text, several labels: 1 texts of train"].places == (
        f"'row 5': {train}, line 7; {train}, line 23",
    )
    mojibake = next(finding for problem, finding in said.items() if "mojibake" in problem)
    assert mojibake.places[0].startswith(f"{train}, line 24: 'that\\x92s a lot")
    assert fails(found) == []


def test_rows_that_are_cut_are_said(folder: Path) -> None:
    problems = [finding.problem for finding in check(folder, task={"max_length": 16}).findings]
    for split in ("train", "dev"):
        assert any(f"of the rows of {split} are cut at 16 tokens" in problem for problem in problems)


def test_steps_are_counted_by_windows(folder: Path) -> None:
    context = "a long story without end " * 60
    questions = [
        {"id": str(n), "question": f"what {n}?", "answers": [{"text": "story", "answer_start": 7}]}
        for n in range(40)
    ]
    squad = {"data": [{"paragraphs": [{"context": context, "qas": questions}]}]}
    (folder / "squad.json").write_text(json.dumps(squad))
    task = {"type": "question-answering", "train": str(folder / "squad.json"), "dev": None}
    task |= {"text": None, "label": None, "max_length": 64}
    found = check(folder, task=task)
    data = start(checked(spam_config(folder, task=task)), folder)
    windows = len(data.train.items)
    assert windows > 1000
    assert found.figures["steps_per_epoch"] == EpochOrder(windows, 16, 7).steps_per_epoch
    assert found.figures["windows"] == {"train": windows}
    assert found.figures["lengths"]["train"]["median"] > 1200
    assert any(f"rows of train are long: {windows:,} windows" in each.problem for each in found.findings)


def test_doubtful_labels_are_found_here_and_said_by_the_run(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_rows(folder / "train.tsv", "neg\ta", "NEG\tb", "pos\tc", "NaN\td", "0\te", " neg\tf")
    write_rows(folder / "dev.tsv", "neg\tx", "pos\ty")
    problems = [finding.problem for finding in check(folder).findings]
    start(checked(spam_config(folder)), folder)
    warnings = capsys.readouterr().out
    for said in (
        "labels that usually stand for a missing one: 'NaN' (1)",
        "'neg' (3), 'NEG' (1)",
        "labels of two kinds, numbers ('0' (1)) beside words",
        "labels of train that dev does not have: '0' (1), 'NEG' (1), 'NaN' (1)",
        "1 labels of train have blanks around them, first in",
    ):
        assert any(said in problem for problem in problems)
        assert said in warnings


FAILING: dict[str, tuple[tuple[str, ...], dict[str, Any]]] = {
    "an unknown label in dev": (("ham\ta", "eggs\tb"), {}),
    "a row without a label": (("ham\ta", "\tb"), {}),
    "too many fields": (("ham\ta", "ham\tb\tc"), {}),
    "an empty text": (("ham\ta", "ham\t "), {}),
    "no rows": ((), {}),
    "no such column": (("ham\ta",), {"task": {"text": "massage"}}),
    "weights of other labels": (("ham\ta",), {"task": {"class_weights": {"ham": 1.0}}}),
    "rows too long for the model": (("ham\ta",), {"task": {"max_length": 128}}),
    "labels that are no numbers": (("ham\ta",), {"task": {"type": "regression"}}),
}


@pytest.mark.parametrize("name", FAILING)
def test_what_would_fail_is_found_and_does_fail(folder: Path, name: str) -> None:
    rows, sections = FAILING[name]
    write_rows(folder / "dev.tsv", *rows)
    assert stops(folder, **sections) in fails(check(folder, **sections))


def test_one_label_alone_is_found(folder: Path) -> None:
    write_rows(folder / "train.tsv", "ham\ta", "ham\tb")
    assert fails(check(folder)) == [stops(folder)]


def test_too_few_rows_for_dev_are_found(folder: Path) -> None:
    write_rows(folder / "train.tsv", "ham\ta", "spam\tb")
    task = {"dev": None, "dev_fraction": 0.1}
    assert fails(check(folder, task=task)) == [stops(folder, task=task)]


def test_faults_of_both_files_are_found_at_once(folder: Path) -> None:
    write_rows(folder / "train.tsv", "ham\ta", "spam\tb", "ham", "ham\tc\td")
    (folder / "dev.tsv").write_bytes(b"label\tmessage\nham\tcaf\xe9\neggs\tb\n")
    wrong, labels = (
        "dev.tsv: bytes that are not utf-8; 1 of its 3 lines has such bytes",
        "labels that the model does not learn",
    )
    found = fails(check(folder))
    assert [
        each for each in ("2 of 4 rows cannot be used", wrong, labels) if not any(each in f for f in found)
    ] == []
    assert found[0] == stops(folder)


def test_rows_left_out_on_purpose_are_no_failure(folder: Path) -> None:
    write_rows(folder / "train.tsv", "ham\ta", "spam\tb", "ham")
    found = check(folder, task={"skip_bad": True, "dev": None})
    assert fails(found) == []
    assert "left out 1 of 3 rows" in found.findings[0].problem
    assert found.figures["rows"] == {"train": 2}


def test_wrong_bytes_are_named_with_their_place(folder: Path) -> None:
    (folder / "train.tsv").write_bytes(b"label\tmessage\nham\tcaf\xe9\nspam\tb\n")
    found = check(folder)
    assert found.findings[0].places == ("line 2: ham\tcaf\\xe9",)
    assert "train.tsv, line 2: byte 21 (0xe9) is not utf-8" in stops(folder)


def test_a_file_that_is_not_there_is_an_error(folder: Path) -> None:
    (folder / "dev.tsv").unlink()
    with pytest.raises(UserError, match="no such file"):
        check(folder)
    with pytest.raises(UserError, match="no such folder"):
        check(folder, model=str(folder / "nowhere"))


def test_a_model_trained_on_shorter_rows_is_said(folder: Path) -> None:
    path = folder / "bert" / "tokenizer_config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"model_max_length": 16}))
    write_spam(folder / "dev.tsv", rows=32, skip=96)
    assert any("longer than 16 tokens, the longest" in finding.problem for finding in check(folder).findings)


def test_columns_of_a_conll_file_are_said(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "a.conll").write_text("1 Ann B-NP B-PER\n2 ran O O\n")
    task = {"type": "token-classification", "train": str(folder / "a.conll"), "dev": None}
    task |= {"text": None, "label": None}
    found = check(folder, task=task)
    columns = "words in column 1, tags in column 3 of 4, counted from 0; column 0 has numbers alone"
    assert found.notes == [f"{folder / 'a.conll'}: {columns}"]
    other = "column 2 could hold the tags too; 3, the last, is read: set task.label: 2 to learn those"
    assert any(finding.problem.endswith(other) for finding in found.findings)
    start(checked(spam_config(folder, task=task)), folder)
    said = capsys.readouterr().out
    assert columns in said
    assert other in said
