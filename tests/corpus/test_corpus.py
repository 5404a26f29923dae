"""The four formats -> paragraphs and ends of documents."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow
import pyarrow.parquet
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bertcli.config.corpus import CorpusConfig
from bertcli.corpus import documents as corpus_module
from bertcli.corpus.documents import read_paragraphs
from bertcli.system.errors import UserError


def documents(path: Path, **options: Any) -> list[list[str]]:
    """The paragraphs of each document; the last one must have been ended, too."""
    found: list[list[str]] = [[]]
    for paragraph in read_paragraphs(path, CorpusConfig(files=["-"], **options)):
        if paragraph is None:
            found.append([])
        else:
            found[-1].append(paragraph)
    assert found.pop() == []
    return found


def write(path: Path, text: str) -> Path:
    path.write_bytes(text.encode())
    return path


def test_text_a_paragraph_a_line_a_blank_line_ends_a_document(tmp_path: Path):
    path = write(tmp_path / "a.txt", "\n \none \r\n  two\n\t\n\n\u3000\nthree")
    assert documents(path) == [["one", "two"], ["three"]]


def test_text_a_document_a_file(tmp_path: Path):
    path = write(tmp_path / "a.txt", "one\n\ntwo\n\n\nthree\n")
    assert documents(path, document="file") == [["one", "two", "three"]]


def test_hard_wrapped_lines_are_joined_up_to_a_blank_one(tmp_path: Path):
    path = write(tmp_path / "a.txt", "It was a\r\n  dark night;\r\n\r\n\r\nthe rain\nfell\n")
    assert documents(path, document="file", join_lines=True) == [["It was a dark night;", "the rain fell"]]


def test_hard_wrapped_lines_without_a_blank_one_are_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(corpus_module, "LONGEST_LINE", 100)
    path = write(tmp_path / "a.txt", "ten chars.\n" * 20)
    with pytest.raises(UserError, match="a paragraph of more than 100 characters; with join_lines"):
        documents(path, document="file", join_lines=True)


def test_sentences_a_line_each(tmp_path: Path):
    path = write(tmp_path / "a.txt", "One. Still one.\nTwo\n\nThree\n")
    assert documents(path, format="sentences") == [["One. Still one.", "Two"], ["Three"]]


def test_jsonl_a_document_a_line(tmp_path: Path):
    rows = [{"body": "one\ntwo\n\nthree", "id": 1}, {"body": " "}, {"body": "half an emoji \ud83d!"}]
    path = write(tmp_path / "a.jsonl", "\n".join(map(json.dumps, rows)) + "\n\n")
    expected = [["one", "two", "three"], ["half an emoji \ufffd!"]]
    assert documents(path, format="jsonl", text_key="body") == expected


@pytest.mark.parametrize("indent", [None, 2])
def test_a_list_of_objects_is_read_as_json_lines(tmp_path: Path, indent: int | None):
    rows = [{"text": "one\ntwo\n\nthree"}, {"text": " "}, {"text": "half an emoji \ud83d!"}]
    path = write(tmp_path / "a.json", json.dumps(rows, indent=indent))
    assert documents(path, format="jsonl") == [["one", "two", "three"], ["half an emoji \ufffd!"]]
    with pytest.raises(UserError, match=r"a.json, object 1 \(line \d\): no key 'body', got the keys text"):
        documents(path, format="jsonl", text_key="body")


def test_json_texts_are_documents(tmp_path: Path):
    path = write(tmp_path / "a.json", json.dumps(["one\ntwo", "", "three"]))
    assert documents(path, format="jsonl") == [["one", "two"], ["three"]]


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("{'text': 1}", r"a.jsonl, line 2: not JSON: .*format: jsonl needs one object a line"),
        ('{"body": "a"}', r"a.jsonl, line 2: no key 'text', got the keys body; .*corpus.text_key"),
        ("[1]", r"a.jsonl, line 2: no key 'text', got list"),
        ('{"text": null}', r"a.jsonl, line 2: the text under 'text' is not a string: null"),
    ],
)
def test_a_wrong_jsonl_line_is_named(tmp_path: Path, line: str, message: str):
    path = write(tmp_path / "a.jsonl", f'{{"text": "good"}}\n{line}\n')
    with pytest.raises(UserError, match=message):
        documents(path, format="jsonl")


def write_parquet(path: Path, **columns: Any) -> Path:
    pyarrow.parquet.write_table(pyarrow.table(columns), path)
    return path


def test_parquet_a_document_a_row(tmp_path: Path):
    path = write_parquet(tmp_path / "a.parquet", body=["one\ntwo", None, "three"], n=[1, 2, 3])
    assert documents(path, format="parquet", text_key="body") == [["one", "two"], ["three"]]


def test_a_parquet_file_with_two_columns_of_a_name_is_refused(tmp_path: Path):
    table = pyarrow.Table.from_arrays([pyarrow.array(["a"]), pyarrow.array(["b"])], names=["text", "text"])
    pyarrow.parquet.write_table(table, tmp_path / "a.parquet")
    with pytest.raises(UserError, match=r"a.parquet: 2 columns have the name 'text'; rename all but one"):
        documents(tmp_path / "a.parquet", format="parquet")


def test_a_parquet_text_that_is_not_utf_8_is_named_by_its_row(tmp_path: Path):
    texts = pyarrow.array([b"one", b"\xd4he cat"]).view(pyarrow.string())
    path = write_parquet(tmp_path / "a.parquet", text=texts)
    with pytest.raises(UserError, match=r"a.parquet, row 2, column 'text': not UTF-8"):
        documents(path, format="parquet")


def test_wrong_parquet_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    path = write_parquet(tmp_path / "a.parquet", body=["one"], n=[1])
    with pytest.raises(UserError, match=r"no column 'text', got body, n; name .* corpus.text_key"):
        documents(path, format="parquet")
    with pytest.raises(UserError, match="column 'n' holds int64; text"):
        documents(path, format="parquet", text_key="n")
    with pytest.raises(UserError, match=r"b.parquet: not a readable Parquet file"):
        documents(write(tmp_path / "b.parquet", "plain text\n"), format="parquet")
    monkeypatch.setitem(__import__("sys").modules, "pyarrow.parquet", None)
    with pytest.raises(UserError, match=r"pip install 'bertcli\[parquet\]'"):
        documents(path, format="parquet")


@given(found=st.lists(st.lists(st.text(alphabet="ab é.", min_size=1), min_size=1), max_size=5))
def test_text_written_as_documents_is_read_as_these(
    tmp_path_factory: pytest.TempPathFactory, found: list[list[str]]
):
    found = [[p.strip() for p in document if p.strip()] for document in found]
    text = "\n\n".join("\n".join(document) for document in found if document)
    path = write(tmp_path_factory.getbasetemp() / "documents.txt", text)
    assert documents(path) == [document for document in found if document]
