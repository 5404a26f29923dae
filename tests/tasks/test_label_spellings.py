"""Labels as programs and people write them, in every format: read right, or refused with a way that works."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from bertcli.system.errors import UserError
from bertcli.tasks.examples import TextExample
from bertcli.tasks.label_cells import bits, separator_of, written_list
from bertcli.tasks.labels import check_labels, label_set, spelled_as
from tests.tasks.reading import FORMATS, choices, read, settings, write, write_jsonl, write_rows

SEVERAL = {"multi_label": True}
NAMES = {"multi_label": True, "label_names": ["food", "tech", "travel"]}
TWO = [("food",), ("tech", "food")]
HOT = [("food",), ("food", "tech")]


def labels(folder: Path, format: str, values: list[Any], **given: Any) -> list[Any]:
    rows = [{"text": f"text {number}", "label": value} for number, value in enumerate(values)]
    return [each.label for each in read(write_rows(folder, format, rows), settings(**given))]


@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize(
    ("values", "given", "found"),
    [
        (["1.0", "1", "0.0"], {}, ["1", "1", "0"]),
        ([1.0, 2.0, 10.0], {}, ["1", "2", "10"]),
        ([" ham", "spam "], {}, ["ham", "spam"]),
        (["1.5", "01", "v1.0"], {}, ["1.5", "01", "v1.0"]),
        ([0, 1], {"label_names": ["bad", "good"]}, ["bad", "good"]),
        (["1.0", "bad"], {"label_names": ["bad", "good"]}, ["good", "bad"]),
        (["-1", "0", "2"], {"skip_labels": ["-1"]}, ["0", "2"]),
        ([-1, 0, 2], {"skip_labels": [-1]}, ["0", "2"]),
        (["-1.0", "0.0", "2.0"], {"skip_labels": [-1.0]}, ["0", "2"]),
        (["1", "2", "5"], {"label_names": [1, 2, 3, 4, 5]}, ["1", "2", "5"]),
        (["1.0", "2.0"], {"label_names": [1.0, 2.0]}, ["1.0", "2.0"]),
        (["food", "tech,food"], SEVERAL, TWO),
        (["food", "tech|food"], SEVERAL | {"label_separator": "|"}, TWO),
        (["food", "tech; food"], SEVERAL | {"label_separator": ";"}, TWO),
        (["food", "tech || food"], SEVERAL | {"label_separator": "||"}, TWO),
        (["['food']", "['tech', 'food']"], SEVERAL, TWO),
        (['["food"]', '["tech", "food"]'], SEVERAL, TWO),
        (["['food']", "['tech' 'food']"], SEVERAL, TWO),
        (["('food',)", "('tech', 'food')"], SEVERAL, TWO),
        (["{'food'}", "array(['tech', 'food'], dtype=object)"], SEVERAL, TWO),
        (["[1]", "[2, 1]"], SEVERAL, [("1",), ("2", "1")]),
        (["1", "2.0,1"], SEVERAL, [("1",), ("2", "1")]),
        (["[1, 0, 0]", "[1, 1, 0]"], NAMES, HOT),
        (["[1. 0. 0.]", "[1. 1. 0.]"], NAMES, HOT),
        (["1 0 0", "1 1 0"], NAMES, HOT),
        (["1,0,0", "1,1,0"], NAMES, HOT),
        (["[True, False, False]", "[True, True, False]"], NAMES, HOT),
        (["0", "[0, 1]"], NAMES, HOT),
    ],
)
def test_labels_in_a_field(tmp_path: Path, format: str, values: list[Any], given: Any, found: list[Any]):
    assert labels(tmp_path, format, values, **given) == found


@pytest.mark.parametrize("format", ["jsonl", "json", "parquet"])
@pytest.mark.parametrize(
    ("values", "given", "found"),
    [
        ([["food"], ["tech", "food"]], SEVERAL, TWO),
        ([[1], [2, 1]], SEVERAL, [("1",), ("2", "1")]),
        ([[1.0, 0.0, 0.0], [1.0, 1.0, 0.0]], NAMES, HOT),
        ([[True, False, False], [True, True, False]], NAMES, HOT),
        ([["1", "0", "0"], ["1", "1", "0"]], NAMES, HOT),
        ([[1, 0], [0, 1]], {"multi_label": True, "label_names": ["a", "b"]}, [("a",), ("b",)]),
    ],
)
def test_lists_of_labels(tmp_path: Path, format: str, values: list[Any], given: Any, found: list[Any]):
    assert labels(tmp_path, format, values, **given) == found


WAYS = [
    (["[1, 0, 0]", "[1, 1, 0]"], SEVERAL, r"multi-hot.*task.label_names: \[A, B, C\]", NAMES),
    (["1 0 0", "1 1 0"], SEVERAL, r"multi-hot.*task.label_names: \[A, B, C\]", NAMES),
    (["1 0 0", "1 1 0"], {}, r"set task.multi_label: true and task.label_names: \[A, B, C\]", NAMES),
    (["1,0,0", "1,1,0"], {}, r"set task.multi_label: true and task.label_names: \[A, B, C\]", NAMES),
    (["['food']", "['tech', 'food']"], {}, "for any number of labels a text set task.multi_label", SEVERAL),
    (['["food"]', '["tech", "food"]'], {}, "for any number of labels a text set task.multi_label", SEVERAL),
    (["[1, 0, 0]", "[1, 1, 0]"], NAMES | {"label_names": ["a", "b", "c", "d"]}, "3 values, not 4", NAMES),
]


@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize(("values", "given", "message", "way"), WAYS)
def test_what_is_refused_is_read_in_the_way_that_the_message_says(
    tmp_path: Path, format: str, values: list[str], given: Any, message: str, way: Any
):
    with pytest.raises(UserError, match=message) as refusal:
        labels(tmp_path, format, values, **given)
    assert "skip_bad" not in str(refusal.value)
    assert labels(tmp_path, format, values, **way) in (HOT, TWO)


@pytest.mark.parametrize(
    ("value", "given", "message"),
    [
        ("B-ORG O", {}, "a tag for each word; set task.type: token-classification"),
        ("[food, tech]", SEVERAL, "looks like a list without quotes"),
        ("2", {"label_names": ["a", "b"]}, r"the label '2' is no name of task.label_names, .* 0 to 1"),
        ("0", {"label_names": [1, 2, 3]}, "the label '0' is no name of task.label_names$"),
        ("-1", {"label_names": ["a", "b"]}, r"task.skip_labels: \[\"-1\"\]"),
        ([1, 1], {"multi_label": True, "label_names": ["a", "b", "c"]}, "2 values, not 3"),
        ([1], {"multi_label": True, "label_names": ["a", "b"]}, "expected a 0 or 1 for each of 2 names"),
        ([1, 0, 1], {}, r"a 0 or 1 for each label: set task.multi_label: true and task.label_names"),
        (["a"], {}, "for any number of labels a text set task.multi_label: true"),
        ({"a": 1}, {}, "holds an object"),
    ],
)
def test_a_field_that_is_no_label(tmp_path: Path, value: Any, given: Any, message: str):
    with pytest.raises(UserError, match=message):
        labels(tmp_path, "jsonl", [value], **given)


@pytest.mark.parametrize(
    "text", ["[" + " " * 10**5 + "x]", "1" + " " * 10**5 + "x", "[" + "'a' " * 10**4 + "x]"]
)
def test_a_long_field_that_is_no_list_is_found_out_at_once(text: str):
    assert written_list(text) is None
    assert bits(text) is None


def examples(*names: str) -> list[TextExample]:
    return [TextExample(f"line {i}", {}, ("a",), label=name) for i, name in enumerate(names, 1)]


@pytest.mark.parametrize(
    ("names", "mark"),
    [
        (["0", "1", "2", "-1"], "-1"),
        (["1", "2", "3", "-1"], "-1"),
        (["entailment", "neutral", "-"], "-"),
        (["-1", "0", "1"], None),
        (["-2", "-1", "0", "1", "2"], None),
        (["+", "-"], None),
    ],
)
def test_a_mark_of_no_label_is_no_class(names: list[str], mark: str | None):
    if mark is None:
        assert set(label_set(examples(*names), settings())) == set(names)
        return
    with pytest.raises(UserError, match=rf'1 rows have the label .*task.skip_labels: \["{mark}"\]; or learn'):
        label_set(examples(*names), settings())
    assert mark in label_set(examples(*names), settings(skip_labels=[]))
    assert mark not in label_set(examples(*names[:-1]), settings(skip_labels=[mark]))


def test_rows_that_are_left_out_by_their_label_are_counted(tmp_path: Path):
    said: list[str] = []
    path = write(tmp_path / "a.csv", "text,label\na,-1\nb,x\nc,y\n")
    assert len(read(path, settings(skip_labels=["-1"]), report=said.append)) == 2
    assert said == [f"{path}: left out 1 of 3 rows by their label (task.skip_labels)"]


def test_a_model_keeps_its_own_spelling_of_numbers():
    spelled = spelled_as(examples("1", "0"), ["0.0", "1.0"])
    check_labels(spelled, ["0.0", "1.0"], settings())
    assert [example.label for example in spelled if isinstance(example, TextExample)] == ["1.0", "0.0"]


def answers(folder: Path, given: list[Any], **keys: Any) -> list[int]:
    names = ("first", "second", "third", "fourth")
    rows = [{"question": f"Q{i}?"} | {name: f"{name} {i}" for name in names} for i in range(len(given))]
    table = [row | {"label": label} for row, label in zip(rows, given, strict=True)]
    return [
        each.label for each in read(write_jsonl(folder / "a.jsonl", *table), choices(choices=names, **keys))
    ]


def test_answers_by_numbers_letters_and_columns(tmp_path: Path):
    right = [0, 1, 2, 3]
    assert answers(tmp_path, ["0", "1", "2.0", 3]) == right
    assert answers(tmp_path, ["1", "2", "3.0", 4], first_choice=1) == right
    assert answers(tmp_path, ["A", "b", "C", "D"]) == right
    assert answers(tmp_path, ["first", "second", "third", "fourth"]) == right
    assert answers(tmp_path, ["first 0", "second 1", "third 2", "fourth 3"]) == right


def test_answers_that_count_from_1_are_not_shifted(tmp_path: Path):
    with pytest.raises(
        UserError, match=r"the label '4' is no choice, .* set task.first_choice: 1"
    ) as refusal:
        answers(tmp_path, ["1", "4", "3"])
    assert "skip_bad" not in str(refusal.value)
    with pytest.raises(UserError, match=r"the label '0' is no choice, .* set task.first_choice: 0"):
        answers(tmp_path, ["0", "1"], first_choice=1)
    with pytest.raises(UserError, match=r"skip_bad"):  # it counts from 0, and one row is wrong
        answers(tmp_path, ["0", "4"])


def test_numbers_among_choices_of_numbers(tmp_path: Path):
    row = {"question": "Which is 1?", "choices": ["1", "2", "3"], "label": "1"}
    path = write_jsonl(tmp_path / "a.jsonl", row)
    with pytest.raises(UserError, match=r"if labels are numbers alone, set task.first_choice"):
        read(path, choices())
    assert read(path, choices(first_choice=1))[0].label == 0


def test_a_separator_is_in_more_than_one_label_of_twenty_and_most_parts_are_labels_alone() -> None:
    alone = ["a", "b"] * 19
    assert separator_of([*alone, "a|b"]) is None
    assert separator_of([*alone, "a|b", "b|a"]) is None
    assert separator_of([*alone, "a|b", "b|a", "a|b"]) == "|"
    assert separator_of([*alone, "a|b", "c|d", "e|f"]) is None
    assert separator_of([*alone, "a|b", "b|a", "a|"]) is None
