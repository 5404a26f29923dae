"""TSV and CSV: headers, columns, and when a quote is a quote."""

from __future__ import annotations

import csv
import io
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bertcli.config.task import TaskSettings
from bertcli.system.errors import UserError
from tests.tasks.reading import read, settings, write

FIELDS = [st.text(alphabet=f'ab {mark}",é', min_size=1, max_size=8) for mark in "\t\n"]
FIELD = st.one_of(FIELDS).filter(lambda text: text.strip())


def rows(path: Path, given: TaskSettings | None = None, labeled: bool = True) -> list[tuple]:
    return [(each.texts[0], each.label) for each in read(path, given, labeled)]


@pytest.mark.parametrize("name", ["a.tsv", "a.tsv.gz", "a.tsv.zst", "noSuffix", "a.data"])
@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_a_header_names_the_columns(tmp_path: Path, name: str, end: str):
    path = write(tmp_path / name, f"\ufefflabel\ttext{end}ham\tOk lar{end}{end}spam\tFree entry{end}")
    examples = read(path)
    assert [(each.texts[0], each.label) for each in examples] == [("Ok lar", "ham"), ("Free entry", "spam")]
    assert [each.where for each in examples] == [f"{path}, line 2", f"{path}, line 4"]
    assert examples[0].columns == {"label": "ham", "text": "Ok lar"}
    assert len(examples[0].texts) == 1


def test_columns_by_number_and_names_for_a_file_without_a_header(tmp_path: Path):
    path = write(tmp_path / "a.tsv", "x\t1\tone\nx\t0\ttwo\n")
    by_name = settings(columns=["source", "label", "text"])
    by_number = settings(columns=["source", "label", "text"], text=2, label=1)
    assert rows(path, by_name) == rows(path, by_number) == [("one", "1"), ("two", "0")]


def test_a_csv_has_quotes_commas_and_lines_in_its_fields(tmp_path: Path):
    path = write(tmp_path / "a.csv", 'text,label\r\n"one, ""two""\r\nthree",x\r\nfour,y\r\n')
    examples = read(path)
    assert [each.texts[0] for each in examples] == ['one, "two"\nthree', "four"]
    assert [each.where for each in examples] == [f"{path}, line 2", f"{path}, line 4"]


@pytest.mark.parametrize("separator", [";", "\t"])
def test_a_csv_of_other_separators(tmp_path: Path, separator: str):
    lines = ["", "label;text", 'x;"one, two; three"', "y;1,5"]
    path = write(tmp_path / "a.csv", "\n".join(lines).replace(";", separator) + "\n")
    assert [each.texts[0] for each in read(path)] == [f"one, two{separator} three", "1,5"]
    with pytest.raises(UserError, match=r"no column 'txt'.*separated by (semicolons|tabs)"):
        read(path, settings(text="txt"))


@pytest.mark.parametrize("name", ["a.csv", "a.tsv", "a.psv", "a.txt"])
@pytest.mark.parametrize("separator", [";", "|", "\t", "\\t", "¦", ","])
def test_the_separator_that_is_named_separates(tmp_path: Path, name: str, separator: str):
    written = "\t" if separator == "\\t" else separator
    text = "label^text\nx^one: two\ny^three\n".replace("^", written)
    path = write(tmp_path / name, text)
    assert rows(path, settings(separator=separator)) == [("one: two", "x"), ("three", "y")]
    quoted = write(tmp_path / name, text.replace("one: two", f'"one{written}two"'))
    assert rows(quoted, settings(separator=separator))[0] == (f"one{written}two", "x")


def test_a_table_of_one_column_says_how_to_name_the_separator(tmp_path: Path):
    path = write(tmp_path / "a.tsv", "label|text\nx|one\n")
    with pytest.raises(UserError, match=r"no column 'text'.*separated by tabs.* name it in task.separator\)"):
        read(path)
    with pytest.raises(UserError, match=r"no column 'txt'.*separated by '\|'; if the file has no header"):
        read(path, settings(text="txt", separator="|"))


@pytest.mark.parametrize("columns", [None, ["text", "label"]])
def test_fields_beyond_the_header_can_be_ignored(tmp_path: Path, columns: list[str] | None):
    header = "" if columns else "text,label\n"
    path = write(tmp_path / "a.csv", f"{header}one,x,\ntwo,y\nthree,x,more,\n,,,\n")
    given = settings(ignore_extra_fields=True, columns=columns)
    said: list[str] = []
    examples = read(path, given, note=said.append)
    assert [(each.texts[0], each.label) for each in examples] == [("one", "x"), ("two", "y"), ("three", "x")]
    assert examples[2].columns == {"text": "three", "label": "x"}
    first = 1 if columns else 2
    assert said == [
        f"{path}: ignored fields beyond the header's 2 in 2 rows, first in line {first}; 1 of them hold text"
    ]
    short = write(tmp_path / "a.csv", f"{header}one,x\ntwo\n")
    with pytest.raises(UserError, match=r"1 field, not 2 \(text, label\); mend the file"):
        read(short, given)


def test_separators_at_the_ends_of_rows_do_not_hide_the_quotes_of_a_tsv(tmp_path: Path):
    path = write(tmp_path / "a.tsv", 'text\tlabel\n"one\ttwo"\tx\t\n"three"\ty\n')
    said: list[str] = []
    given = settings(ignore_extra_fields=True)
    assert [each.texts[0] for each in read(path, given, note=said.append)] == ["one\ttwo", "three"]
    assert said[0].endswith("header's 2 in 1 row, first in line 2; all of them are empty")


def test_a_column_without_a_name_goes_by_its_number(tmp_path: Path):
    path = write(tmp_path / "a.csv", ",text,label\n0,one,x\n1,two,y\n")
    assert read(path)[1].columns == {"0": "1", "text": "two", "label": "y"}


@pytest.mark.parametrize(
    "lines",
    [
        ['ham\tHe said "ok', "spam\tfree"],  # a quote inside a field
        ['ham\t"ok', "spam\tfree"],  # never closed
        ['ham\t" ok', 'spam\t" free " now', "ham\tbye"],  # as GLUE's files have them
        ['ham\t"ok', 'spam\tfree"', "ham\tbye"],  # opens in one row, closes in the next
        ['ham\t"ok', "spam\tone", 'ham\ttwo"', "spam\tbye"],
    ],
)
def test_quotes_of_a_tsv_that_enclose_no_fields_are_text(tmp_path: Path, lines: list[str]):
    path = write(tmp_path / "a.tsv", "\n".join(["label\ttext", *lines]) + "\n")
    expected = [tuple(reversed(line.split("\t"))) for line in lines]
    assert rows(path) == rows(path, settings(quoting="none")) == expected


def test_a_spreadsheets_tsv_is_read_as_it_was_written(tmp_path: Path):
    path = write(tmp_path / "a.tsv", 'label\ttext\nham\t"a ""b""\tc\nd"\nspam\tfree\n')
    assert rows(path) == rows(path, settings(quoting="csv")) == [('a "b"\tc\nd', "ham"), ("free", "spam")]


@given(st.lists(st.tuples(st.sampled_from(["x", "y"]), FIELD), min_size=1, max_size=6))
def test_what_python_writes_as_tsv_is_read_back(
    tmp_path_factory: pytest.TempPathFactory, table: list[tuple[str, str]]
):
    text = io.StringIO()
    csv.writer(text, delimiter="\t", lineterminator="\n").writerows([("label", "text"), *table])
    path = write(tmp_path_factory.getbasetemp() / "written.tsv", text.getvalue())
    assert rows(path) == [(text, label) for label, text in table]


def test_a_file_to_predict_may_lack_the_label(tmp_path: Path):
    path = write(tmp_path / "a.tsv", "id\ttext\n1\tone\n")
    (example,) = read(path, labeled=False)
    assert (example.texts[0], example.label, example.columns) == ("one", None, {"id": "1", "text": "one"})


@pytest.mark.parametrize(
    "text",
    ["x\t1\tone\n", "x\tone\n", "index\ttext\n0\tone\n"],  # as the training file; no label; a header
)
def test_a_file_to_predict_need_not_have_the_training_files_columns(tmp_path: Path, text: str):
    path = write(tmp_path / "a.tsv", text)
    assert rows(path, settings(columns=["source", "label", "text"]), labeled=False) == [("one", None)]


def test_columns_by_number_are_not_counted_anew_where_the_label_is_missing(tmp_path: Path):
    path = write(tmp_path / "a.tsv", "x\tone\ty\n")
    given = settings(columns=["source", "label", "text", "more"], text=2, label=1)
    with pytest.raises(UserError, match=r"a.tsv, line 1: 3 fields, not 4 \(source, label, text, more\)"):
        read(path, given, labeled=False)


def test_rows_of_nothing_but_separators_are_passed_over(tmp_path: Path):
    path = write(tmp_path / "a.csv", "text,label\none,x\n,\n,,,\ntwo,y\n")
    assert rows(path) == [("one", "x"), ("two", "y")]


@pytest.mark.parametrize(
    ("text", "given", "message"),
    [
        ("", {}, "a.tsv: is empty; expected rows of tsv"),
        ("\t\t\nx\ty\n", {}, "a.tsv: the header is empty"),
        ("text\tlabel\n", {}, "a.tsv: holds no rows"),
        ("text\tlabel\ttext\nx\ty\tz\n", {}, "the header names 'text' more than once"),
        (
            "txt\tlabel\nx\ty\n",
            {},
            r"task.text: no column 'text'; did you mean 'txt'\?; the columns: txt, label",
        ),
        ("text,label\nx,y\n", {}, r"no column 'text'.*separated by tabs; if the file has no header.*columns"),
        ("text\tlabel\nx\ty\n", {"label": 2}, "task.label: no column 2, counted from 0; the columns: text"),
        ("text\tlabel\nx\ty\n", {"label": None}, "task.label: name the column of the label; the columns"),
        (
            "text\tlabel\nx\ty\tz\n",
            {},
            r"3 fields, not 2 \(text, label\); if fields beyond the header are .*task.ignore_extra_fields",
        ),
        ("text\tlabel\nx\n", {}, "a.tsv, line 2: 1 field, not 2"),
        ('text\tlabel\n"x\n', {}, "1 field, not 2.*if quotes enclose fields here, set task.quoting: csv"),
        ('text\tlabel\n"x\ty\n', {"quoting": "csv"}, "a.tsv, line 2: the quotes .*set task.quoting: none"),
        (
            "text\tlabel\nx\ty\n",
            {"columns": ["text", "label"]},
            "the first line is a header.*leave task.columns out",
        ),
        (
            "Ok\tham\nHm\tspam\nHi\tham\n",
            {"text": 0, "label": 1},
            "line 3: the label is 'ham', as in the first",
        ),
    ],
)
def test_what_cannot_be_read_is_said(tmp_path: Path, text: str, given: dict, message: str):
    with pytest.raises(UserError, match=message):
        read(write(tmp_path / "a.tsv", text), settings(**given))


def test_wrong_bytes_name_the_tasks_own_key(tmp_path: Path):
    path = write(tmp_path / "a.tsv", "text\tlabel\nélan\tx\n", "latin-1")
    with pytest.raises(
        UserError, match=r"a.tsv, line 2: byte 11 \(0xe9\) is not utf-8.*name it in task.encoding"
    ):
        read(path)
    assert rows(path, settings(encoding="latin-1")) == [("élan", "x")]
    with pytest.raises(UserError, match=r"task.encoding: 'klingon' is not an encoding"):
        read(path, settings(encoding="klingon"))
