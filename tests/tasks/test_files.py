"""Which file, in which format."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from pathlib import Path

import pytest

from bertcli.config.task import LABEL_LINES
from bertcli.system.errors import UserError
from bertcli.tasks.facts import facts_of
from bertcli.tasks.files import find_labeled_file, read_examples
from bertcli.tasks.registry import TASKS
from tests.tasks.reading import choices, questions, read, settings, write


@pytest.mark.parametrize("name", TASKS)
def test_a_task_with_formats_of_its_own_has_functions_that_read_them(name: str) -> None:
    task = facts_of(name)
    assert {*task.own_examples} == {*task.formats} - {*LABEL_LINES}


def test_a_path_comes_before_a_sample_of_its_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    assert find_labeled_file("sms-spam").name == "sms-spam.tsv.gz"
    write(tmp_path / "sms-spam", "text\tlabel\n")
    assert find_labeled_file("sms-spam") == Path("sms-spam")


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("sms-spm", "sms-spm: no such file in /.*, where bertcli was called; did you mean sms-spam"),
        ("trian.tsv", "trian.tsv: no such file in /.*; did you mean train.tsv"),
        ("zzz", "zzz: no such file in /.*; bundled samples: sms-spam, wnut17, wnut17-dev, wnut17-test"),
        ("nowhere/zzz", "nowhere/zzz: no such file in /.*; bundled samples"),
        ("folder", "folder: is a folder; name the file in it"),
    ],
)
def test_a_file_that_is_not_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, message: str):
    monkeypatch.chdir(tmp_path)
    write(tmp_path / "train.tsv", "")
    (tmp_path / "folder").mkdir()
    with pytest.raises(UserError, match=message):
        find_labeled_file(name)


@pytest.mark.parametrize("type", ["classification", "regression"])
def test_a_text_a_line_to_predict(tmp_path: Path, type: str):
    path = write(tmp_path / "a.txt", "one\r\n\n two\tthree \n")
    examples = read(path, settings(type=type), labeled=False)
    assert [each.texts[0] for each in examples] == ["one", "", "two\tthree"]
    assert examples[2].where == f"{path}, line 3"


@pytest.mark.parametrize("given", [settings(text=["a", "b"]), choices(), questions()])
def test_plain_lines_cannot_hold_more_than_one_text(tmp_path: Path, given):
    path = write(tmp_path / "a.txt", "one\n")
    with pytest.raises(UserError, match=r"a.txt: a line of plain text is one text, but .* give a table"):
        read(path, given, labeled=False)


def test_labels_in_a_txt_file_stand_in_columns(tmp_path: Path):
    path = write(tmp_path / "a.txt", "text\tlabel\none\tx\n")
    assert read(path)[0].label == "x"


def test_the_format_is_what_the_config_says(tmp_path: Path):
    path = write(tmp_path / "a.tsv", "text,label\none,x\n")
    assert read(path, settings(format="csv"))[0].label == "x"
    path = write(tmp_path / "a.tsv", '{"text": "one", "label": "x"}\n')
    assert read(path, settings(format="jsonl"))[0].label == "x"


def test_a_file_that_cannot_be_opened(tmp_path: Path):
    with pytest.raises(UserError, match=r"a.tsv: cannot be read: No such file or directory"):
        read(tmp_path / "a.tsv")


def test_a_long_file_is_read_a_row_at_a_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    path = write(tmp_path / "a.jsonl", '{"text": "one"}\n')
    lines = 0

    def endless(*_: object, **__: object) -> Iterator[tuple[int, str]]:
        nonlocal lines
        while True:
            lines += 1
            yield lines, '{"text": "one"}'

    monkeypatch.setattr("bertcli.corpus.json_texts.numbered_lines", endless)
    assert len(list(islice(read_examples(path, settings(), labeled=False), 5))) == 5
    assert lines <= 6
