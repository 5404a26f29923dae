"""The kind of a file follows from its lines."""

from __future__ import annotations

import pytest

from bertcli.advice.init.kinds import csv_separator, kind_of_text

PROSE = [
    "It was late, and cold; the rain fell.",
    "Anna, who was tired, sat down.",
    "",
    "Nobody came, not one.",
    "He said nothing.",
    "",
]
CONLL = ["Anna B-PER", "lives O", "in O", "Rome B-LOC", "\t", "She O", "likes O", "Rome B-LOC", "", "cut"]


@pytest.mark.parametrize(
    ("lines", "suffix", "kind"),
    [
        (PROSE * 3, ".txt", "text"),
        (CONLL, ".txt", "conll"),
        ([line.replace(" ", "\t") for line in CONLL], ".tsv", "conll"),
        (["a\tb"] * 5, ".txt", "tsv"),
        (["one line"], ".tsv", "tsv"),
        (["a,b", "1,2", "3,4", "5,6"], ".txt", "csv"),
        (["a;b", "1,5;2", "3;4", "5;6"], ".data", "csv"),
        (['{"text": "a"}', '{"text": "b"}'], ".txt", "jsonl"),
        (['{"data": [{"paragraphs": [{"context": "x", "qas": []}]}]}'], ".json", "squad"),
        (['{"text": "Write two paragraphs about \\"qas\\"", "label": "x"}'] * 3, ".jsonl", "jsonl"),
        (['{"title": "x", "paragraphs": ["a", "b"]}'] * 3, ".jsonl", "jsonl"),
        (["{", ' "data": [{"paragraphs": [{"qas": []}]}]', "}"], ".json", "squad"),
        (["[", " 1,", " 2", "]"], ".json", "json"),
        (["[[1], [2]]"], ".json", "json"),
        (["[]"], ".json", "json"),
        (['[{"text": "a"}, {"te'], ".json", "jsonl"),
        (["[", "  {", '    "text": "a"', "  }", "]"], ".txt", "jsonl"),
        (['["a text", "another'], ".json", "json-texts"),
        (['["Ah!" cried he.] They', "left."], ".txt", "text"),
        (["__label__a b"] * 3, ".txt", "fasttext"),
        (["NUM:date When was it ?"] * 3, ".txt", "trec"),
        (["ANNA: When was it?", "EVE: Never.", "ANNA: Oh."], ".txt", "text"),
        (["a|b", "1, 5|2", "3|4", "5|6"], ".txt", "csv"),
        (["a,b", "1,2", "3,4", "5,6"], ".tsv", "csv"),
        (["{", ' "a": 1', "}"], ".json", "json"),
        (["[Enter ANNA]", "Anna. Good morning."], ".txt", "text"),
        ([], ".txt", "text"),
    ],
)
def test_kinds(lines: list[str], suffix: str, kind: str) -> None:
    assert kind_of_text(lines, suffix) == kind


def test_a_separator_must_give_records_of_as_many_fields() -> None:
    assert csv_separator(PROSE) is None
    assert csv_separator(['"a, b",c', '"d, e",f', "g,h", "i,j"]) == ","
