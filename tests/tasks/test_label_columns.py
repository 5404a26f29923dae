"""Several labels a text as columns or keys of 0 and 1, and keys of labels that contradict each other."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from bertcli.system.errors import UserError
from bertcli.tasks.labels import label_set
from tests.tasks.reading import FORMATS, read, settings, write, write_jsonl, write_rows

COLUMNS = {"label": ["food", "tech", "travel"]}


@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize("one", [1, 1.0, "1", True])
def test_columns_of_0_and_1_are_several_labels(tmp_path: Path, format: str, one: Any):
    zero = type(one)(0)
    rows = [
        {"text": "a", "food": one, "tech": zero, "travel": one},
        {"text": "b", "food": zero, "tech": zero, "travel": zero},
    ]
    given = settings(**COLUMNS)
    found = read(write_rows(tmp_path, format, rows), given)
    assert [each.label for each in found] == [("food", "travel"), ()]
    assert given.multi_label
    assert label_set(found, given) == ("food", "tech", "travel")


@pytest.mark.parametrize(("yes", "no"), [("yes", "no"), ("Y", "N"), ("TRUE", "FALSE"), ("1.0", "0.0")])
def test_yes_and_no_are_1_and_0(tmp_path: Path, yes: str, no: str):
    path = write(tmp_path / "a.csv", f"text,food,tech,travel\na,{yes},{no},{yes}\nb,{no},{no},{no}\n")
    assert [each.label for each in read(path, settings(**COLUMNS))] == [("food", "travel"), ()]


@pytest.mark.parametrize("mark", ["x", "X", "1", "yes", "✓", " x "])
def test_with_ticks_a_mark_says_that_a_label_fits(tmp_path: Path, mark: str):
    path = write(tmp_path / "a.csv", f"text,food,tech,travel\na,{mark},,{mark}\nb,,0,no\n")
    found = read(path, settings(**COLUMNS, ticks=True))
    assert [each.label for each in found] == [("food", "travel"), ()]
    for no in "?✗✘":
        path = write(tmp_path / "b.csv", f"text,food,tech,travel\na,{mark},{no},\n")
        with pytest.raises(UserError, match=rf"column 'tech': \{no} is neither 0 nor 1"):
            read(path, settings(**COLUMNS, ticks=True))


def test_an_object_has_a_0_or_1_for_each_label(tmp_path: Path):
    rows = [{"text": "a", "label": {"food": 1, "tech": 0.0, "x": True}}, {"text": "b", "label": {"food": 0}}]
    found = read(write_jsonl(tmp_path / "a.jsonl", *rows), settings(multi_label=True))
    assert [each.label for each in found] == [("food", "x"), ()]


def test_rows_with_an_empty_cell_can_be_left_out(tmp_path: Path):
    path = write(tmp_path / "a.csv", "text,label,food,tech,travel\na,x,1,0,1\nb,,,,\nc,y,0,0,0\n")
    found = read(path, settings(skip_labels=[""]))
    assert [each.label for each in found] == ["x", "y"]
    assert [each.texts[0] for each in read(path, settings(skip_labels=[""], multi_label=True))] == ["a", "c"]
    found = read(path, settings(**COLUMNS, skip_labels=[""]))
    assert [each.label for each in found] == [("food", "travel"), ()]
    unscored = write(tmp_path / "b.csv", "text,food,tech,travel\na,1,0,1\nb,-1,-1.0,-1\n")
    (found,) = read(unscored, settings(**COLUMNS, skip_labels=["-1"]))
    assert found.texts == ("a",)
    assert len(read(path, settings(multi_label=True))) == 3
    with pytest.raises(UserError, match="no label"):
        read(path, settings())


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        ({"ticks": True}, "ticks is for several columns of labels"),
        ({"label": ["a", "b"], "multi_label": False}, "label: several columns are several labels a text"),
        ({"label_separator": "", "multi_label": True}, "label_separator: it is empty"),
        ({"label_separator": "|"}, "label_separator is for multi_label: true, and one column"),
        ({**COLUMNS, "label_names": ["a", "b"]}, "label_names is for one column of labels"),
        ({"threshold": {}}, "threshold: it names no label"),
        ({"threshold": {"a": 0.5, "b": 0.5}}, "threshold: a number for each label is for multi_label: true"),
    ],
)
def test_keys_of_labels_that_contradict_each_other(keys: dict[str, Any], message: str):
    with pytest.raises(ValueError, match=message):
        settings(**keys)


@pytest.mark.parametrize("cell", ['{"food": 1, "tech": 0, "x": true}', "{'food': 1, 'tech': 0.0, 'x': True}"])
def test_a_cell_with_an_object_has_a_0_or_1_for_each_label(tmp_path: Path, cell: str):
    path = write(tmp_path / "a.tsv", f"text\tlabel\na\t{cell}\n")
    given = {"quoting": "none"}
    assert read(path, settings(multi_label=True, **given))[0].label == ("food", "x")
    with pytest.raises(
        UserError, match=r"is an object; for any number of labels a text set task\.multi_label"
    ):
        read(path, settings(**given))
    path.write_text("text\tlabel\na\t{'food': 'very', 'tech': 2}\n")
    with pytest.raises(UserError, match="is no object with a 0 or 1 for each label"):
        read(path, settings(multi_label=True, **given))


@pytest.mark.parametrize("value", [[], "[]"])
def test_an_empty_list_is_no_label_of_two_names(tmp_path: Path, value: Any):
    path = write_jsonl(tmp_path / "a.jsonl", {"text": "a", "label": value})
    assert read(path, settings(multi_label=True, label_names=["a", "b"]))[0].label == ()


def test_a_column_of_another_value_is_no_label(tmp_path: Path):
    path = write_jsonl(tmp_path / "a.jsonl", {"text": "a", "food": 1, "tech": 3, "travel": 0})
    with pytest.raises(UserError, match="column 'tech': 3 is neither 0 nor 1"):
        read(path, settings(**COLUMNS))
    path = write(tmp_path / "b.csv", "text,food,tech,travel\na,1,,0\n")
    with pytest.raises(
        UserError, match=r"column 'tech': nothing is neither 0 nor 1; .* with task\.ticks: true"
    ):
        read(path, settings(**COLUMNS))
    with pytest.raises(UserError, match="no column 'travel'"):
        read(write(tmp_path / "a.csv", "text,food,tech\na,1,0\n"), settings(**COLUMNS))
