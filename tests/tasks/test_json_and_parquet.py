"""JSON lines and Parquet: values of any type, rows of any keys, and damaged files."""

from __future__ import annotations

import datetime
import json
from pathlib import Path

import pyarrow
import pyarrow.parquet
import pytest

from bertcli.system.errors import UserError
from bertcli.tasks.rows import BATCH
from tests.tasks.reading import questions, read, settings, write, write_jsonl


@pytest.mark.parametrize(
    ("value", "label"), [("a", "a"), (3, "3"), (3.0, "3"), (0.5, "0.5"), (True, "true"), (" a ", "a")]
)
def test_labels_of_any_type_are_words(tmp_path: Path, value: object, label: str):
    path = write_jsonl(tmp_path / "a.jsonl", {"text": "one", "label": value})
    assert [each.label for each in read(path)] == [label]


@pytest.mark.parametrize("name", ["a.jsonl", "a.ndjson", "a.json", "a.jsonl.gz"])
def test_json_lines(tmp_path: Path, name: str):
    path = write(tmp_path / name, '{"text": "one", "label": 1, "more": [1]}\r\n\n{"label": 2, "text": 2}\n')
    examples = read(path)
    assert [(each.texts[0], each.label) for each in examples] == [("one", "1"), ("2", "2")]
    assert examples[1].where == f"{path}, line 3"
    assert examples[0].columns == {"text": "one", "label": 1, "more": [1]}


@pytest.mark.parametrize("name", ["a.json", "a.jsonl", "a.json.gz"])
@pytest.mark.parametrize("indent", [None, 2])
def test_a_list_of_objects(tmp_path: Path, name: str, indent: int | None):
    rows = [{"text": "one", "label": 1, "more": [1]}, {"label": 2, "text": "half \ud83d"}]
    examples = read(write(tmp_path / name, "\n" + json.dumps(rows, indent=indent)))
    assert [(each.texts[0], each.label) for each in examples] == [("one", "1"), ("half \ufffd", "2")]
    place = f"object 2 (line {10 if indent else 2})"
    assert examples[1].where == f"{tmp_path / name}, {place}"
    assert examples[0].columns == rows[0]


def test_an_object_of_a_list_that_cannot_be_used_is_named(tmp_path: Path):
    path = write(
        tmp_path / "a.json",
        '[{"text": "one", "label": "x"},\n{"text": "two"},\n3, {"text": "", "label": ""}]',
    )
    message = (
        r"3 of 4 rows cannot be used:\n"
        r"  .*a.json, object 2 \(line 2\): no key 'label'; its keys: text\n"
        r"  .*a.json, object 3 \(line 3\): 3 is not a JSON object\n"
    )
    with pytest.raises(UserError, match=message):
        read(path)
    assert len(read(path, skip_bad=True)) == 1
    with pytest.raises(
        UserError, match=r"a.json, object 1 \(line 1\): \"text\" is not a JSON object; expected JSON objects"
    ):
        read(write(tmp_path / "a.json", '["text", "label"]'))
    with pytest.raises(UserError, match=r"a.json: is empty; expected JSON objects, one a line or in a list"):
        read(write(tmp_path / "a.json", "[ ]"))


def test_a_list_of_questions_is_no_squad_file(tmp_path: Path):
    rows = [{"question": "Who?", "context": "He was."}, {"question": "What?", "context": "It."}]
    path = write(tmp_path / "a.json", json.dumps(rows))
    assert [(each.id, each.texts[0]) for each in read(path, questions(), labeled=False)] == [
        ("1", "Who?"),
        ("2", "What?"),
    ]
    with pytest.raises(UserError, match=r"a.json: answers are read from SQuAD JSON"):
        read(path, questions())


def test_half_a_character_becomes_a_replacement_wherever_it_stands(tmp_path: Path):
    path = write(
        tmp_path / "a.jsonl", r'{"text": "a\ud83d", "label": "x", "m": ["\uD83D"], "e": "\ud83d\ude00"}'
    )
    (example,) = read(path)
    assert example.columns == {"text": "a\ufffd", "label": "x", "m": ["\ufffd"], "e": "😀"}


@pytest.mark.parametrize(
    ("second", "message"),
    [
        ('{"text": "two" "label"}', "a.jsonl, line 2, column 16: not JSON: Expecting ',' delimiter"),
        ('["two", "x"]', r'a.jsonl, line 2: \["two", "x"\] is not a JSON object; mend'),
        ('{"text": "two"}', "a.jsonl, line 2: no key 'label'; its keys: text"),
        (
            '{"text": ["two"], "label": 1}',
            "line 2, column 'text': holds a list; expected a text or a number",
        ),
        (
            '{"text": "two", "label": {}}',
            "line 2, column 'label': holds an object; expected a text",
        ),
        ('{"text": "two", "label": null}', "line 2, column 'label': no label"),
        ('{"text": "two", "label": ' + "9" * 5000 + "}", "a.jsonl, line 2: JSON that cannot be read"),
        ("[" * 100_000, "a.jsonl, line 2: JSON that cannot be read"),
        ('{"text": "two", "label": NaN}', "line 2, column 'label': no label"),
        (
            '{"text": "two", "label": -Infinity}',
            "line 2: JSON that cannot be read: -Infinity is not",
        ),
    ],
)
def test_a_line_that_cannot_be_used_is_named(tmp_path: Path, second: str, message: str):
    path = write(tmp_path / "a.jsonl", '{"text": "one", "label": "x"}\n' + second + "\n")
    with pytest.raises(UserError, match=message):
        read(path)
    assert len(read(path, skip_bad=True)) == 1


def test_a_file_of_something_else_is_said_at_once(tmp_path: Path):
    with pytest.raises(UserError, match=r"a.jsonl, line 1, column 1: not JSON"):
        read(write(tmp_path / "a.jsonl", "text\tlabel\n"))
    with pytest.raises(UserError, match=r"a.jsonl: is empty; expected JSON objects, one a line or in a list"):
        read(write(tmp_path / "a.jsonl", "\n"))
    with pytest.raises(UserError, match="no column 'text'; did you mean 'txt'"):
        read(write_jsonl(tmp_path / "a.jsonl", {"txt": "one"}))


def test_parquet(tmp_path: Path):
    count = BATCH + 1
    day = datetime.date(2024, 1, 2)
    table = {"text": [f"text {i}" for i in range(count)], "label": [i % 2 for i in range(count)]}
    path = tmp_path / "a.parquet"
    pyarrow.parquet.write_table(pyarrow.table(table | {"day": [day] * count}), path)
    examples = read(path)
    assert [each.texts[0] for each in examples] == table["text"]
    assert {each.label for each in examples} == {"0", "1"}
    assert examples[-1].where == f"{path}, row {count}"
    assert examples[0].columns == {"text": "text 0", "label": 0, "day": "2024-01-02"}
    assert [each.texts[0] for each in read(path, settings(text=0, label=1))] == table["text"]


def test_parquet_of_bytes_and_of_numbers_that_are_none(tmp_path: Path):
    path = tmp_path / "a.parquet"
    table = {
        "text": [b"one", "zwölf".encode()],
        "label": ["x", "y"],
        "image": [b"\xff\xd8", b"ok"],
        "score": [float("nan"), float("inf")],
    }
    pyarrow.parquet.write_table(pyarrow.table(table), path)
    assert [each.texts[0] for each in read(path)] == ["one", "zwölf"]
    assert [each.columns["score"] for each in read(path)] == [None, "inf"]
    with pytest.raises(UserError, match="row 1, column 'image': holds bytes; expected a text or a number"):
        read(path, settings(text="image"))


def test_what_parquet_holds_in_lists_and_structs_can_be_written_as_json(tmp_path: Path):
    path = tmp_path / "a.parquet"
    meta = {"when": datetime.date(2024, 1, 2), "scores": [1.0, float("nan")], "image": b"\xff"}
    pyarrow.parquet.write_table(pyarrow.table({"text": ["a"], "label": ["x"], "meta": [meta]}), path)
    (example,) = read(path)
    assert example.columns["meta"] == {"when": "2024-01-02", "scores": [1.0, None], "image": "ff"}


def test_a_damaged_parquet_file(tmp_path: Path):
    path = write(tmp_path / "a.parquet", "text\tlabel\n")
    with pytest.raises(UserError, match=r"a.parquet: not a readable Parquet file"):
        read(path)
    with pytest.raises(UserError, match=r"b.parquet: not a readable Parquet file"):
        read(tmp_path / "b.parquet")


def test_a_parquet_text_that_is_not_utf_8(tmp_path: Path):
    path = tmp_path / "a.parquet"
    texts = pyarrow.array([b"one", b"\xd4he cat"]).view(pyarrow.string())
    pyarrow.parquet.write_table(pyarrow.table({"text": texts, "label": ["0", "1"]}), path)
    with pytest.raises(UserError, match=r"a.parquet: a text is not UTF-8 \(.*0xd4"):
        read(path)


def test_a_parquet_file_damaged_in_the_middle(tmp_path: Path):
    path = tmp_path / "a.parquet"
    texts = [f"{i * 7919}" for i in range(20_000)]
    pyarrow.parquet.write_table(pyarrow.table({"text": texts, "label": texts}), path, compression="gzip")
    data = bytearray(path.read_bytes())
    data[100:5000] = bytes(4900)
    path.write_bytes(data)
    with pytest.raises(UserError, match=r"a.parquet: not a readable Parquet file"):
        read(path)
