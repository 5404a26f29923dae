"""Labels of texts: words, numbers, several at once; pairs; and rows that are left out."""

from __future__ import annotations

from pathlib import Path

import pytest

from bertcli.system.errors import UserError
from tests.tasks.reading import read, settings, write, write_jsonl


def test_pairs(tmp_path: Path):
    path = write(tmp_path / "a.tsv", "a\tb\tlabel\none\ttwo\tx\n")
    (example,) = read(path, settings(text=["a", "b"]))
    assert example.texts == ("one", "two")


@pytest.mark.parametrize(
    ("value", "labels"),
    [
        (["b", "a", "b"], ("b", "a")),
        ("b, a,b", ("b", "a")),
        ([1, 2], ("1", "2")),
        (7, ("7",)),
        ([], ()),
        ("", ()),
        (None, ()),
    ],
)
def test_several_labels(tmp_path: Path, value: object, labels: tuple[str, ...]):
    path = write_jsonl(tmp_path / "a.jsonl", {"text": "one", "label": value})
    assert read(path, settings(multi_label=True))[0].label == labels


def test_numbers(tmp_path: Path):
    path = write(tmp_path / "a.tsv", "text\tlabel\none\t3.5\ntwo\t-1e2\n")
    assert [each.label for each in read(path, settings(type="regression"))] == [3.5, -100.0]


@pytest.mark.parametrize("value", ["three", "3,5", "", "nan", "inf", True, None, [1.0], 10**400])
def test_a_label_that_is_no_number(tmp_path: Path, value: object):
    path = write_jsonl(tmp_path / "a.jsonl", {"text": "one", "label": value})
    with pytest.raises(
        UserError, match=r"a.jsonl, line 1, column 'label': .* is not a number; .* such as 3.5"
    ):
        read(path, settings(type="regression"))


@pytest.mark.parametrize("value", [-0.1, 2, "1.01"])
def test_a_number_that_is_no_probability(tmp_path: Path, value: object):
    path = write_jsonl(tmp_path / "a.jsonl", {"text": "one", "label": value})
    refused = r"a.jsonl, line 1, column 'label': .* is not from 0 to 1, as task.sigmoid: true needs it"
    with pytest.raises(UserError, match=refused):
        read(path, settings(type="regression", sigmoid=True))


def test_numbers_from_0_to_1_are_probabilities(tmp_path: Path):
    path = write(tmp_path / "a.tsv", "text\tlabel\none\t0\ntwo\t0.25\nthree\t1\n")
    given = read(path, settings(type="regression", sigmoid=True))
    assert [each.label for each in given] == [0.0, 0.25, 1.0]


def test_labels_of_a_file_to_predict_are_not_read(tmp_path: Path):
    path = write(tmp_path / "a.tsv", "text\tlabel\none\tthree\n")
    assert read(path, settings(type="regression"), labeled=False)[0].label is None


TWO_BAD = "text\tlabel\none\tx\n \ty\ntwo\t\nthree\tz\n"


def test_bad_rows_are_all_counted_before_they_are_refused(tmp_path: Path):
    path = write(tmp_path / "a.tsv", TWO_BAD)
    with pytest.raises(UserError) as error:
        read(path)
    assert str(error.value).split("\n") == [
        f"{path}: 2 of 4 rows cannot be used:",
        f"  {path}, line 3: the text is empty",
        f"  {path}, line 4, column 'label': no label",
        "mend the file, or leave such rows out with task.skip_bad: true",
    ]


def test_bad_rows_are_left_out_and_named(tmp_path: Path):
    path = write(tmp_path / "a.tsv", TWO_BAD)
    said: list[str] = []
    assert [each.texts[0] for each in read(path, skip_bad=True, report=said.append)] == ["one", "three"]
    assert len(said) == 1
    assert said[0].startswith(f"{path}: left out 2 of 4 rows, which cannot be used:\n  {path}, line 3: ")


def test_of_many_bad_rows_the_first_are_named(tmp_path: Path):
    path = write(tmp_path / "a.tsv", "text\tlabel\nok\tx\n" + "one\t\n" * 2000)
    with pytest.raises(UserError, match="2,000 of 2,001 rows cannot be used") as error:
        read(path)
    assert len(str(error.value).split("\n")) == 8
    assert "\n  and 1,995 more\n" in str(error.value)


def test_nothing_is_left_of_a_file_of_bad_rows(tmp_path: Path):
    path = write(tmp_path / "a.tsv", "text\tlabel\none\t\ntwo\t\n")
    with pytest.raises(UserError, match="2 of 2 rows cannot be used"):
        read(path, skip_bad=True)


def test_empty_texts_to_predict_go_through_and_are_reported(tmp_path: Path):
    path = write(tmp_path / "a.tsv", "text\tn\none\t1\n\t2\n")
    said: list[str] = []
    assert [each.texts[0] for each in read(path, labeled=False, report=said.append)] == ["one", ""]
    assert said == [f"{path}: the text is empty in 1 of 2 rows:\n  {path}, line 3"]


@pytest.mark.parametrize("labeled", [True, False])
def test_a_file_whose_texts_are_all_empty(tmp_path: Path, labeled: bool):
    path = write(tmp_path / "a.tsv", "text\tlabel\n\tx\n \ty\n")
    with pytest.raises(
        UserError, match=r"the text of every row is empty; does task.text name the right column"
    ):
        read(path, labeled=labeled)


@pytest.mark.parametrize("value", ["3,5", "-0,25", " 1,234 "])
def test_a_comma_in_a_number_is_refused_with_what_to_write(tmp_path: Path, value: str):
    path = write(tmp_path / "a.tsv", f"text\tlabel\none\t{value}\n")
    point = value.strip().replace(",", ".")
    expected = rf"line 2, column 'label': .* is not a number; its comma may be .* such as {point}"
    with pytest.raises(UserError, match=expected):
        read(path, settings(type="regression"))


@pytest.mark.parametrize("same", [{"text": "label"}, {"text": ["text", "label"]}, {"label": 0}])
def test_one_column_is_not_both_text_and_label(tmp_path: Path, same: dict[str, object]):
    path = write(tmp_path / "a.tsv", "text\tlabel\none\tx\ntwo\ty\n")
    with pytest.raises(UserError, match=r"task.text and task.label both name the column '(text|label)'"):
        read(path, settings(**same))
    assert len(list(read(path, settings(**same), labeled=False))) == 2
