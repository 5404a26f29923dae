"""Lines of fastText and TREC: labels, texts, and what is said where a line is neither."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from bertcli.config.task import TaskSettings
from bertcli.system.errors import UserError
from tests.tasks.reading import read, settings, write


def label_lines(format: str, **values: Any) -> TaskSettings:
    return TaskSettings.model_validate({"type": "classification", "format": format} | values)


def rows(path: Path, given: TaskSettings, labeled: bool = True) -> list[tuple[str, Any]]:
    return [(each.texts[0], each.label) for each in read(path, given, labeled)]


def test_the_columns_have_names_of_their_own() -> None:
    found = label_lines("fasttext")
    assert (found.text, found.label) == ("text", "label")
    assert label_lines("trec", label="fine").label == "fine"


@pytest.mark.parametrize("name", ["a.txt", "a.ft", "train", "a.txt.gz"])
def test_lines_of_fasttext(tmp_path: Path, name: str) -> None:
    path = write(
        tmp_path / name, '__label__spam Win a prize\r\n\n__label__ham\tSee: you, "ok\n at __label__ham six\n'
    )
    examples = read(path, label_lines("fasttext"))
    assert [(each.texts[0], each.label) for each in examples] == [
        ("Win a prize", "spam"),
        ('See: you, "ok', "ham"),
        ("at six", "ham"),
    ]
    assert examples[1].where == f"{path}, line 3"
    assert examples[1].columns == {"label": "ham", "text": 'See: you, "ok'}


def test_several_labels_of_fasttext(tmp_path: Path) -> None:
    path = write(tmp_path / "a.txt", "__label__a __label__b-c one\n__label__a two\nthree\n")
    given = label_lines("fasttext", multi_label=True)
    assert rows(path, given) == [("one", ("a", "b-c")), ("two", ("a",)), ("three", ())]
    message = (
        r"2 of 3 rows cannot be used:\n"
        r"  .*line 1: 2 labels \(a, b-c\); expected one, as in __label__spam; .* task.multi_label: true\n"
        r"  .*line 3: no label; expected one"
    )
    with pytest.raises(UserError, match=message):
        read(path, label_lines("fasttext"))


@pytest.mark.parametrize(
    ("format", "line", "message"),
    [
        ("fasttext", "__label__ one", "line 2: a label without a name"),
        ("fasttext", "__label__x", "line 2: the text is empty"),
        ("trec", "DESC:manner", "line 2: the text is empty"),
        ("trec", "How did it?", "line 2: no label; expected COARSE:fine before the text, as in DESC:manner"),
        ("trec", ": How", "line 2: no label"),
    ],
)
def test_a_line_that_cannot_be_used_is_named(tmp_path: Path, format: str, line: str, message: str) -> None:
    good = "__label__x one" if format == "fasttext" else "A:b one"
    path = write(tmp_path / "a.txt", f"{good}\n{line}\n")
    with pytest.raises(UserError, match=message):
        read(path, label_lines(format))
    assert len(read(path, label_lines(format), skip_bad=True)) == 1


@pytest.mark.parametrize(("label", "expected"), [(None, "DESC"), ("label", "DESC"), ("fine", "DESC:manner")])
def test_lines_of_trec_have_a_coarse_label_and_a_fine_one(
    tmp_path: Path, label: str | None, expected: str
) -> None:
    path = write(tmp_path / "a.label", "DESC:manner How did it ?\nHUM:ind  Who: he ?\n")
    examples = read(path, label_lines("trec", label=label))
    assert (examples[0].texts[0], examples[0].label) == ("How did it ?", expected)
    assert examples[1].columns == {"label": "HUM", "fine": "HUM:ind", "text": "Who: he ?"}


@pytest.mark.parametrize(
    ("format", "with_labels"),
    [("fasttext", "__label__x one\n\n__label__y __label__x Re:two\n"), ("trec", "X:x one\n\nY:y Re:two\n")],
)
def test_a_file_to_predict_has_labels_or_none(tmp_path: Path, format: str, with_labels: str) -> None:
    given = label_lines(format)
    texts = [("one", None), ("", None), ("Re:two", None)]
    path = write(tmp_path / "a.txt", with_labels)
    said: list[str] = []
    assert [(each.texts[0], each.label) for each in read(path, given, False, note=said.append)] == texts
    assert len(said) == (format == "trec")
    bare = write(tmp_path / "bare.txt", "one\n\nRe:two\n")
    assert rows(bare, given, labeled=False) == texts
    assert [each.columns for each in read(bare, given, False)][2] == {"text": "Re:two"}


def test_a_table_to_predict_is_one_for_a_model_of_such_lines_too(tmp_path: Path) -> None:
    for format in ("fasttext", "trec"):
        for name, text in (
            ("a.csv", "text,n\none,1\n"),
            ("a.jsonl", '{"text": "one"}'),
            ("a.tsv", "text\none\n"),
        ):
            assert rows(write(tmp_path / name, text), label_lines(format), labeled=False) == [("one", None)]
    with pytest.raises(UserError, match="no label; expected one, as in __label__spam"):
        read(write(tmp_path / "a.csv", "text,label\none,x\n"), label_lines("fasttext"))


@pytest.mark.parametrize(
    ("line", "kind"), [("__label__spam Win, now", "fastText"), ("DESC:manner How did it, then ?", "TREC")]
)
def test_a_file_that_is_read_otherwise_says_what_to_set(tmp_path: Path, line: str, kind: str) -> None:
    hint = rf"; this looks like a line of {kind}'s: set task.format: {kind.lower()}"
    for name in ("a.txt", "a.csv"):
        path = write(tmp_path / name, f"{line}\n{line}\n")
        with pytest.raises(UserError, match=f"task.text: no column 'text'.*{hint}"):
            read(path)
        with pytest.raises(UserError, match=f"line 1: . fields?, not 3 .*{hint}"):
            read(path, settings(columns=["text", "label", "more"]))
    said: list[str] = []
    path = tmp_path / "a.txt"
    assert [each.texts[0] for each in read(path, settings(), False, report=said.append)] == [line, line]
    assert said == [f"{path}, line 1: is read as text, from its first word on{hint}"]
