"""JSON lines and lists of objects: each value with its place, whatever the blocks; and damage."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bertcli.config.section import Decoding
from bertcli.corpus import json_texts, streams
from bertcli.corpus.json_texts import read_json_texts
from bertcli.system.errors import UserError

SCALARS = st.one_of(st.none(), st.booleans(), st.integers(), st.floats(allow_nan=False), st.text(max_size=8))
VALUES = st.recursive(
    SCALARS, lambda each: st.lists(each, max_size=3) | st.dictionaries(st.text(max_size=3), each)
)


def read(path: Path) -> list[tuple[str, Any]]:
    return [(each.place, json.loads(each.text)) for each in read_json_texts(path, Decoding())]


def write(path: Path, text: str) -> Path:
    path.write_bytes(text.encode())
    return path


def test_lines_and_lists_have_their_places(tmp_path: Path) -> None:
    lines = write(tmp_path / "lines.json", '\n{"a": 1}\n[2]\n')
    assert [(each.place, each.number, each.text) for each in read_json_texts(lines, Decoding())] == [
        ("line 1", 1, ""),
        ("line 2", 2, '{"a": 1}'),
        ("line 3", 3, "[2]"),
    ]
    listed = write(tmp_path / "list.json", '\ufeff \n[\n {"a":\n  1} , [2],\n3\n]\n')
    assert list(read_json_texts(listed, Decoding())) == [
        ("object 1 (line 3)", 1, 3, '{"a":\n  1}'),
        ("object 2 (line 4)", 2, 4, "[2]"),
        ("object 3 (line 5)", 3, 5, "3"),
    ]
    assert read(write(tmp_path / "empty.json", " [ ] ")) == []


@given(values=st.lists(VALUES, max_size=5), indent=st.sampled_from([None, 0, 2]), block=st.integers(1, 40))
def test_blocks_of_any_size_give_the_same_values(
    tmp_path_factory: pytest.TempPathFactory, values: list[Any], indent: int | None, block: int
) -> None:
    text = json.dumps(values, indent=indent, ensure_ascii=block % 2 == 0)
    path = write(tmp_path_factory.getbasetemp() / "values.json", text)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(streams, "BLOCK", block)
        assert [value for _, value in read(path)] == values


@given(cut=st.integers(1, 75), block=st.integers(1, 80))
def test_a_list_that_is_cut_is_an_error(
    tmp_path_factory: pytest.TempPathFactory, cut: int, block: int
) -> None:
    text = r'[{"text": "one \u20ac, \"two\"", "n": -12.5e3}, {"text": null, "m": [true]}]'
    assert len(text) == 76
    path = write(tmp_path_factory.getbasetemp() / "cut.json", text[:cut])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(streams, "BLOCK", block)
        with pytest.raises(UserError, match="the file ends before its list does"):
            read(path)


@pytest.mark.parametrize("block", [1, 7, 1 << 20])
@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ('[{"a": 1},\n {"a" 2}]', "line 2, column 7: not JSON: Expecting ':' delimiter"),
        ('[{"a": 1}\n{"a": 2}]', "line 2, column 1: not JSON: expected , or ], found {"),
        ('[{"a": 1}{"a": 2}]', "line 1, column 10: not JSON: expected , or ], found {"),
        ('[{"a": 1}e', "line 1, column 10: not JSON: expected , or ], found e"),
        (' \n [{"a": 1}', "line 2, column 11: not JSON: the file ends before its list does"),
        (' \n [{"a": \n1', "line 3, column 2: not JSON: the file ends before its list does"),
        ('[{"a": 1},\n]', "line 2, column 1: not JSON: Expecting value"),
        ('[{"a": 1}]\n\n x', "line 3, column 2: not JSON: there is more text after the end of the list"),
        ('[{"a": "\n"}]', "line 1, column 9: not JSON: Invalid control character at"),
    ],
)
def test_what_is_no_json_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, block: int, text: str, problem: str
) -> None:
    monkeypatch.setattr(streams, "BLOCK", block)
    path = write(tmp_path / "a.json", text)
    with pytest.raises(UserError) as error:
        read(path)
    assert str(error.value).startswith(f"{path}, {problem}")
    assert str(error.value).endswith("; expected a list of objects, since the file begins with [")


@pytest.mark.parametrize(
    ("text", "problem"),
    [('[{"a": ' + "9" * 5000 + "}]", "Exceeds the limit"), ("[" * 100_000, "maximum recursion depth")],
)
def test_what_python_cannot_read_is_named(tmp_path: Path, text: str, problem: str) -> None:
    with pytest.raises(UserError, match=f"a.json, line 1, column 2: not JSON: {problem}"):
        read(write(tmp_path / "a.json", text))


def test_memory_holds_a_value_and_not_the_list(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    taken = 0

    def blocks(*_: Any, **__: Any) -> Iterator[str]:
        nonlocal taken
        yield '[{"n": 0}'
        while True:  # the list never ends
            taken += 1
            yield ', {"n": 1}'

    monkeypatch.setattr(json_texts, "decoded_blocks", blocks)
    values = read_json_texts(tmp_path / "a.json", Decoding())
    for number in range(1, 1001):
        assert next(values).number == number
    assert taken < 1010


def test_a_value_longer_than_a_line_may_be_is_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(json_texts, "LONGEST_LINE", 1000)
    monkeypatch.setattr(streams, "BLOCK", 100)
    path = write(tmp_path / "a.json", json.dumps(["a" * 5000]))
    with pytest.raises(
        UserError, match="line 1, column 2: not JSON: an object of more than 1,000 characters"
    ):
        read(path)
