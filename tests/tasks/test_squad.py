"""SQuAD JSON of both versions, and tables of questions to predict."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from bertcli.system.errors import UserError
from bertcli.tasks.examples import Answer
from tests.tasks.reading import questions, read, write, write_jsonl

CONTEXT = "The cat sat on the 🐈 mat."


def question(id: Any = "q1", **values: Any) -> dict[str, Any]:
    return {"id": id, "question": "Where?", "answers": [{"text": "mat", "answer_start": 21}]} | values


def squad(path: Path, *given: Any) -> Path:
    paragraphs = [{"context": CONTEXT, "qas": list(given)}]
    return write(path, json.dumps({"version": "1.1", "data": [{"title": "x", "paragraphs": paragraphs}]}))


def test_version_1(tmp_path: Path):
    answers = [{"text": "mat", "answer_start": 21}, {"text": "the 🐈 mat", "answer_start": 15}]
    path = squad(tmp_path / "a.json", question(answers=answers), question(7))
    first, second = read(path, questions())
    assert first.answers == (Answer("mat", 21), Answer("the 🐈 mat", 15))
    assert (first.id, first.texts) == ("q1", ("Where?", CONTEXT))
    assert first.where == f"{path}, question q1"
    assert first.texts == ("Where?", CONTEXT)
    assert second.id == "7"
    assert second.columns == {"id": "7", "question": "Where?", "context": CONTEXT}


def test_version_2_has_questions_without_an_answer(tmp_path: Path):
    plausible = [{"text": "cat", "answer_start": 4}]
    path = squad(
        tmp_path / "a.json",
        question(1, is_impossible=False),
        question(2, is_impossible=True, answers=[], plausible_answers=plausible),
        question(3, answers=[]),
    )
    assert [each.answers for each in read(path, questions())] == [(Answer("mat", 21),), (), ()]


def test_to_predict_answers_are_not_read(tmp_path: Path):
    given = question()
    del given["answers"]
    assert read(squad(tmp_path / "a.json", given), questions(), labeled=False)[0].answers is None


def test_windows_line_ends_and_half_characters(tmp_path: Path):
    text = squad(tmp_path / "a.json", question()).read_text(encoding="utf-8").replace(", ", ",\r\n")
    path = write(tmp_path / "b.json", "\ufeff" + text.replace("Where?", r"Where\ud83d"))
    assert read(path, questions())[0].texts[0] == "Where\ufffd"


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (
            question(answers=[{"text": "mat", "answer_start": 20}]),
            "question q1: the answer 'mat' is not at",
        ),
        (question(answers=[{"text": "mat", "answer_start": -4}]), "is not at character -4 .* 'The'"),
        (question(answers=[{"text": "", "answer_start": 2}]), "question q1: the answer '' is not at"),
        (
            question(answers=[{"text": "mat"}]),
            "question q1: no key 'answer_start', which SQuAD JSON has here",
        ),
        (question(answers="mat"), "question q1: 'answers' holds 'mat', which SQuAD JSON does not have here"),
        ({"id": "q1", "question": "Where?"}, "question q1: no key 'answers'"),
        ({"question": "Where?"}, r"data\[0\].paragraphs\[0\].qas\[1\]: no key 'id'"),
        (question(0), "question 0: another question has this id"),
        (question(question=" "), "question q1: the text is empty"),
    ],
)
def test_a_question_that_cannot_be_used(tmp_path: Path, given: dict, message: str):
    path = squad(tmp_path / "a.json", question(0), given)
    with pytest.raises(UserError, match=message):
        read(path, questions())
    said: list[str] = []
    assert [each.id for each in read(path, questions(), skip_bad=True, report=said.append)] == ["0"]
    assert f"{path}: left out 1 of 2 rows" in said[0]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "a.json, line 1, column 1: not JSON: Expecting value"),
        ('{"data":\n [}', "a.json, line 2, column 3: not JSON"),
        ("{}", "a.json: no key 'data', which SQuAD JSON has here"),
        ("[]", "a.json: is empty; expected JSON objects"),
        ('[{"id": 1}]', "a.json: answers are read from SQuAD JSON"),
        ('{"data": {}}', "a.json: 'data' holds '{}', which SQuAD JSON does not have here"),
        ('{"data": [{"paragraphs": [{"qas": []}]}]}', r"a.json, data\[0\].paragraphs\[0\]: no key 'context'"),
        ('{"data": []}', "a.json: holds no rows"),
    ],
)
def test_a_file_that_is_no_squad(tmp_path: Path, text: str, message: str):
    with pytest.raises(UserError, match=message):
        read(write(tmp_path / "a.json", text), questions())


def test_tables_of_questions(tmp_path: Path):
    path = write(tmp_path / "a.tsv", f"question\tcontext\nWhere?\t{CONTEXT}\n")
    (example,) = read(path, questions(), labeled=False)
    assert (example.id, example.texts) == ("2", ("Where?", CONTEXT))
    path = write(tmp_path / "a.jsonl", '{"id": 5, "q": "Where?", "c": "There."}')
    (example,) = read(path, questions(text=["q", "c"]), labeled=False)
    assert (example.id, example.texts[1], example.answers) == ("5", "There.", None)


def row(**values: object) -> dict[str, object]:
    return {"id": "7", "question": "Who?", "context": "It is Anna.", "answers": []} | values


@pytest.mark.parametrize(
    "answers",
    [
        {"text": ["Anna"], "answer_start": [6]},
        [{"text": "Anna", "answer_start": 6}],
        {"text": "Anna", "answer_start": 6},
        '{"text": ["Anna"], "answer_start": [6]}',
    ],
)
def test_answers_in_a_table(tmp_path: Path, answers: object):
    path = write_jsonl(tmp_path / "a.jsonl", row(answers=answers), row(id="8"))
    first, second = read(path, questions())
    assert (first.id, first.answers, second.answers) == ("7", (Answer("Anna", 6),), ())


@pytest.mark.parametrize(
    ("answers", "message"),
    [
        (["Anna"], "does not say where in the context the answer begins"),
        ("Anna", "does not say where in the context the answer begins"),
        ({"text": ["Anna"], "answer_start": []}, "as many values of answer_start as of text"),
        ({"text": ["Anna"], "answer_start": [5]}, "the answer 'Anna' is not at character 5"),
    ],
)
def test_answers_without_a_place_are_refused(tmp_path: Path, answers: object, message: str):
    with pytest.raises(UserError, match=message):
        read(write_jsonl(tmp_path / "a.jsonl", row(answers=answers)), questions())


def test_a_table_of_questions_to_learn_has_answers(tmp_path: Path):
    path = write(tmp_path / "a.tsv", "question\tcontext\nWhere?\tThere.\n")
    with pytest.raises(UserError, match=r"a.tsv: answers are read from SQuAD JSON \(task.format: squad\)"):
        read(path, questions())
