"""CoNLL columns: separators, ends of sentences, comments, and lines that do not fit."""

from __future__ import annotations

from pathlib import Path

import pytest

from bertcli.system.errors import UserError
from tests.tasks.reading import read, words, write

TWO = [(("New", "York", "!"), ("B-LOC", "I-LOC", "O")), (("Hi",), ("O",))]


def sentences(path: Path, **given: object) -> list[tuple]:
    return [(each.words, each.tags) for each in read(path, words(**given))]


@pytest.mark.parametrize(
    "text",
    [
        "New\tB-LOC\nYork\tI-LOC\n!\tO\n\nHi\tO\n\n",
        "New B-LOC\r\nYork I-LOC\r\n! O\r\n\r\nHi O",
        "\ufeff-DOCSTART- O\n\nNew  B-LOC\nYork  I-LOC\n!  O\n\t\n \nHi  O\n",
        "New B-LOC\nYork I-LOC\n! O\n-DOCSTART- O\nHi O\n",
        "New NNP B-NP I-LOC\nYork NNP I-NP I-LOC\n! . O O\n\nHi UH O O\n",  # IOB1, as CoNLL 2003
        "New\tB-LOC\nYork\tE-LOC\n!\tO\n\nHi\tO\n",
        "# id 7 domain=x\nNew\tB-LOC\nYork\tI-LOC\n!\tO\n\n# id\ttext\n# more\nHi\tO\n",
    ],
)
@pytest.mark.parametrize("name", ["a.conll", "a.txt", "a.tsv", "eng.train", "a.bio.gz"])
def test_sentences(tmp_path: Path, text: str, name: str):
    assert sentences(write(tmp_path / name, text)) == TWO


def test_where_words_stand(tmp_path: Path):
    path = write(tmp_path / "a.conll", "# first\n\nNew B-LOC\nYork I-LOC\n\nHi O\n")
    first, second = read(path, words())
    assert (first.texts, first.spans, first.where) == (("New York",), ((0, 3), (4, 8)), f"{path}, line 3")
    assert first.columns == {"text": "New York"}
    assert second.where == f"{path}, line 6"


def test_a_number_sign_with_a_tag_is_a_word(tmp_path: Path):
    path = write(tmp_path / "a.conll", "#\tO\nwin\tO\n#\tO\n\n#x\tB-x\n")
    found = sentences(path)
    assert found == [(("#", "win", "#"), ("O", "O", "O")), (("#x",), ("B-x",))]


def test_a_no_break_space_can_be_a_word(tmp_path: Path):
    path = write(tmp_path / "a.conll", "a\tO\n\u00a0\tO\n")
    assert sentences(path) == [(("a", "\u00a0"), ("O", "O"))]


def test_numbered_columns(tmp_path: Path):
    path = write(tmp_path / "a.conll", "1 Paris B-LOC x\n2 ! O x\n")
    assert sentences(path, text=1, label=2) == [(("Paris", "!"), ("B-LOC", "O"))]


def test_a_file_to_predict_needs_no_tags(tmp_path: Path):
    path = write(tmp_path / "a.conll", "# id 1\nNew\nYork\n\nHi\n")
    assert [(each.words, each.tags) for each in read(path, words(), labeled=False)] == [
        (("New", "York"), None),
        (("Hi",), None),
    ]


@pytest.mark.parametrize(
    ("text", "given", "message"),
    [
        ("", {}, "a.conll: holds no sentences; expected one word a line"),
        ("-DOCSTART- O\n\n# only\n", {}, "a.conll: holds no sentences"),
        ("New\nYork\n", {}, r"a.conll: has one column \(New\); expected a word and its tag"),
        ("New B-x\nYork\n", {}, r"a.conll, line 2: 1 column \(York\), where other lines have 2"),
        ("New\tB-x\n\tO\n", {}, r"a.conll, line 2: 1 column \(O\), where other lines have 2"),
        ("New B-x\nYork y I-x\n", {}, r"a.conll, line 2: 3 columns \(York y I-x\), where other lines have 2"),
        ("New B-x\nYork # I-x\n", {}, "a.conll, line 2: 3 columns"),
        (
            "dog B-x NN\n",
            {},
            r"column \(2, counted from 0\) holds no tags, but 'NN'; set task.label: 1",
        ),
        ("dog NN\n", {}, "a.conll, line 1: 'NN' is not a tag; expected O"),
        (
            "New B-x\n",
            {"label": 2},
            "task.label: no column 2; the columns of a CoNLL file have numbers, here 0 to 1",
        ),
        (
            "New B-x\n",
            {"text": "word", "format": "conll"},
            "task.text: no column 'word'; the columns of a CoNLL",
        ),
    ],
)
def test_what_cannot_be_read_is_said(tmp_path: Path, text: str, given: dict, message: str):
    with pytest.raises(UserError, match=message):
        read(write(tmp_path / "a.conll", text), words(**given))


def test_a_bad_sentence_can_be_left_out(tmp_path: Path):
    path = write(tmp_path / "a.conll", "New B-x\nYork\n\nHi O\n")
    said: list[str] = []
    assert [each.words for each in read(path, words(), skip_bad=True, report=said.append)] == [("Hi",)]
    assert "left out 1 of 2 rows" in said[0]


UNIVERSAL = """# sent_id = 1
# text = a b c d e f g h i j
1\tNew\tB-LOC
2-3\tYork!\t_
2\tYork\tI-LOC
3\t!\tO
3.1\tgone\t_

# sent_id = 2
1\tHi\tO
"""


@pytest.mark.parametrize("labeled", [True, False])
def test_a_column_that_counts_is_not_the_words(tmp_path: Path, labeled: bool):
    path = write(tmp_path / "a.conll", UNIVERSAL)
    said: list[str] = []
    found = read(path, words(), labeled=labeled, note=said.append)
    assert [each.words for each in found] == [words_ for words_, _ in TWO]
    assert [each.tags for each in found] == [tags if labeled else None for _, tags in TWO]
    tags = ", tags in column 2" if labeled else ""
    assert said == [f"{path}: words in column 1{tags} of 3, counted from 0; column 0 has numbers alone"]


@pytest.mark.parametrize("text", ["1\tO\n2\tB-x\n", "7 Paris B-LOC\n9 ! O\n", "1 x B-LOC\n\n1 y O\n"])
def test_numbers_that_do_not_count_are_words(tmp_path: Path, text: str):
    found = read(write(tmp_path / "a.conll", text), words())
    assert found[0].words[0] == text[0]


def test_of_two_columns_of_tags_the_other_is_named(tmp_path: Path):
    path = write(tmp_path / "a.conll", "New NNP B-NP B-LOC\nYork NNP I-NP I-LOC\n")
    noted: list[str] = []
    said: list[str] = []
    assert read(path, words(), report=said.append, note=noted.append)[0].tags == ("B-LOC", "I-LOC")
    assert noted == [f"{path}: words in column 0, tags in column 3 of 4, counted from 0"]
    assert said == [
        f"{path}: column 2 could hold the tags too; 3, the last, is read: set task.label: 2 to learn those"
    ]
    said.clear()
    assert read(path, words(label=2), report=said.append)[0].tags == ("B-NP", "I-NP")
    assert said == []
