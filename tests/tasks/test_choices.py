"""Multiple choice: where the choices stand, and which is right."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from bertcli.system.errors import UserError
from tests.tasks.reading import choices, read, write, write_jsonl


def row(**values: object) -> dict[str, object]:
    return {"question": "Why?", "choices": ["So.", "No.", "Go."], "label": 1} | values


@pytest.mark.parametrize(("label", "right"), [(0, 0), ("2", 2), ("No.", 1), (" Go. ", 2)])
def test_the_right_choice_by_number_or_text(tmp_path: Path, label: object, right: int):
    (example,) = read(write_jsonl(tmp_path / "a.jsonl", row(label=label)), choices())
    assert (example.label, example.choices, example.given) == (right, ("So.", "No.", "Go."), ("Why?",))
    assert example.texts == ("Why?", "So.", "No.", "Go.")


def test_a_number_in_json_is_a_number_even_among_choices_of_numbers(tmp_path: Path):
    path = write_jsonl(tmp_path / "a.jsonl", row(choices=[1, 0], label=0), row(choices=[0, 1], label="1"))
    assert [each.label for each in read(path, choices())] == [0, 1]


def test_a_column_for_each_choice_and_two_texts(tmp_path: Path):
    path = write(tmp_path / "a.tsv", "story\tquestion\ta\tb\tlabel\nOnce.\tWhy?\tSo.\tNo.\t1\n")
    (example,) = read(path, choices(text=["story", "question"], choices=["a", "b"]))
    assert (example.given, example.choices) == (("Once.", "Why?"), ("So.", "No."))


def test_rows_may_differ_in_their_number_of_choices(tmp_path: Path):
    given = [["a", "b"], ["a", "b", "c"]]
    lines = "".join(f"Why?\t{json.dumps(each)}\tb\n" for each in given)
    path = write(tmp_path / "a.tsv", "question\tchoices\tlabel\n" + lines)
    assert [list(each.choices) for each in read(path, choices())] == given


def test_to_predict_no_label_is_needed(tmp_path: Path):
    path = write_jsonl(tmp_path / "a.jsonl", {"question": "Why?", "choices": ["So.", "No."]})
    assert read(path, choices(), labeled=False)[0].label is None


@pytest.mark.parametrize(
    ("values", "message"),
    [
        (
            {"label": 3},
            "line 1: the label '3' is no choice, if 0 is the first of 3; if the labels count from 1, set",
        ),
        (
            {"label": 4},
            "line 1: the label '4' is neither the number of a choice, 0 .the first. to 2, nor its letter",
        ),
        ({"label": "Yes."}, "the label 'Yes.' is neither"),
        ({"label": None}, "the label '' is neither"),
        (
            {"choices": ["1", "0"], "label": "1"},
            "the label '1' is the text of choice 0, and the number of another",
        ),
        ({"choices": ["So.", " "]}, r"line 1: choice 1 \(counted from 0\) is empty"),
        ({"choices": ["So.", None]}, r"line 1: choice 1 \(counted from 0\) is empty"),
        ({"choices": ["So."], "label": 0}, "line 1: 1 choice; expected at least two"),
        (
            {"choices": "So."},
            "line 1, column 'choices': 'So.' is not a list of choices; expected a JSON list",
        ),
        ({"choices": "[So."}, "line 1, column 2: not JSON"),
        ({"choices": [["So."], "No."]}, "line 1, column 'choices': holds a list"),
        ({"question": ""}, "the text of every row is empty"),
    ],
)
def test_a_row_that_cannot_be_used(tmp_path: Path, values: dict, message: str):
    with pytest.raises(UserError, match=message):
        read(write_jsonl(tmp_path / "a.jsonl", row(**values)), choices())


def test_a_choice_that_is_missing_in_a_table(tmp_path: Path):
    path = write(tmp_path / "a.tsv", "question\ta\tb\tlabel\nWhy?\tSo.\t\t0\n")
    with pytest.raises(UserError, match=r"a.tsv, line 2: choice 1 \(counted from 0\) is empty"):
        read(path, choices(choices=["a", "b"]))
    with pytest.raises(UserError, match=r"task.choices: no column 'c'; the columns: question, a, b, label"):
        read(path, choices(choices=["a", "c"]))
