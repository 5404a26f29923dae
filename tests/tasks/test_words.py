"""Words of running text, and of lists in tables."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bertcli.system.errors import UserError
from bertcli.tasks.words import join_words, word_spans
from tests.tasks.reading import read, words, write, write_jsonl


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("I live in Berlin.", ["I", "live", "in", "Berlin", "."]),
        ("“Paris (France)!” :)", ["“", "Paris", "(", "France", ")", "!", "”", ":)"]),
        ("U.S.-led, @you's\u00a0#tag", ["U.S.-led", ",", "@you's", "#tag"]),
        (" ... \n", ["..."]),
        ("", []),
    ],
)
def test_words_of_a_text(text: str, expected: list[str]):
    assert [text[start:end] for start, end in word_spans(text)] == expected


@given(st.text(alphabet="ab.,(\"' \n", max_size=30))
def test_words_cover_all_but_white_space_in_order(text: str):
    spans = word_spans(text)
    assert "".join(text[start:end] for start, end in spans) == "".join(text.split())
    assert all(a[1] <= b[0] for a, b in pairwise(spans))
    assert all(start < end for start, end in spans)


@given(st.lists(st.text(alphabet="ab.", min_size=1, max_size=4), max_size=6))
def test_joined_words_stand_where_it_is_said(found: list[str]):
    text, spans = join_words(found)
    assert [text[start:end] for start, end in spans] == found
    assert text == " ".join(found)


def test_a_text_a_line_to_predict(tmp_path: Path):
    path = write(tmp_path / "a.txt", "\ufeffIn Berlin.\r\n\n  Hi\n")
    first, blank, second = read(path, words(), labeled=False)
    assert blank.words == ()
    assert (first.words, first.spans[1], first.tags) == (("In", "Berlin", "."), (3, 9), None)
    assert (second.texts, second.columns, second.where) == (("Hi",), {"text": "Hi"}, f"{path}, line 3")


@pytest.mark.parametrize("given", [{}, {"text": "message"}])
def test_tables_of_texts_to_predict(tmp_path: Path, given: dict):
    column = given.get("text", "text")
    path = write_jsonl(tmp_path / "a.jsonl", {"id": 1, column: "In Berlin."})
    assert read(path, words(**given), labeled=False)[0].words == ("In", "Berlin", ".")
    path = write(tmp_path / "a.csv", f"id,{column}\n1,In Berlin.\n")
    assert read(path, words(**given), labeled=False)[0].columns == {"id": "1", column: "In Berlin."}
    if given:
        path = write(tmp_path / "a.tsv", f"id\t{column}\n1\tIn Berlin.\n")
        assert read(path, words(**given), labeled=False)[0].words == ("In", "Berlin", ".")


def test_lists_of_words_and_tags(tmp_path: Path):
    path = write_jsonl(tmp_path / "a.jsonl", {"tokens": ["In", "Berlin"], "tags": ["O", "S-LOC"]})
    (example,) = read(path, words(text="tokens", label="tags"))
    assert (example.texts, example.tags) == (("In Berlin",), ("O", "B-LOC"))
    assert read(path, words(text="tokens"), labeled=False)[0].tags is None


@pytest.mark.parametrize(
    ("row", "given", "tags"),
    [
        ({"text": "In Berlin", "tags": "O S-LOC"}, {}, ("O", "B-LOC")),
        ({"text": ["In", "Berlin"], "tags": "['O', 'B-LOC']"}, {}, ("O", "B-LOC")),
        ({"text": "In Berlin", "tags": ["ADP", "PROPN"]}, {"tag_scheme": "plain"}, ("B-ADP", "B-PROPN")),
        ({"text": "In Berlin", "tags": [0, 1]}, {"label_names": ["O", "B-LOC"]}, ("O", "B-LOC")),
        ({"text": "In Berlin", "tags": "0 1.0"}, {"label_names": ["O", "B-LOC"]}, None),
        ({"text": "In Berlin", "tags": [0, 2]}, {"label_names": ["O", "B-LOC"]}, None),
    ],
)
def test_tags_as_texts_names_and_numbers(tmp_path: Path, row: dict, given: dict, tags: tuple | None):
    path = write_jsonl(tmp_path / "a.jsonl", row)
    if tags is not None:
        assert read(path, words(label="tags", **given))[0].tags == tags
        return
    with pytest.raises(UserError, match=r"is no name of task.label_names, and no number of one, 0 to 1"):
        read(path, words(label="tags", **given))


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ({"text": ["In"], "tags": ["O", "O"]}, "line 1: 1 words, but 2 tags"),
        ({"text": ["In"], "tags": ["IN"]}, "line 1: 'IN' is not a tag"),
        (
            {"text": ["In"], "tags": 7},
            "line 1, column 'tags': neither a list nor a text; expected a tag for each",
        ),
        ({"text": [["In"]], "tags": ["O"]}, "line 1, column 'text': holds a list"),
        ({"text": "In it", "tags": "O"}, r"2 words, but 1 tags; .* in lists, in texts .*format: conll"),
        ({"text": [], "tags": []}, "the text of every row is empty"),
    ],
)
def test_a_row_that_cannot_be_used(tmp_path: Path, row: dict, message: str):
    with pytest.raises(UserError, match=message):
        read(write_jsonl(tmp_path / "a.jsonl", row), words(label="tags"))
