"""One answer as JSON, as a row of a table, and as a line to read."""

from __future__ import annotations

import csv
import io
import json

import numpy as np
import pytest

from bertcli.inference.outputs import SEPARATORS, AnswerTable, json_line, row_json
from bertcli.inference.predict import Predicted
from bertcli.system.errors import UserError
from bertcli.tasks.answers import Answered
from bertcli.tasks.classification import Classified
from bertcli.tasks.entities import Entity, Tagged
from bertcli.tasks.examples import ChoiceExample, QuestionExample, TaggedExample, TextExample
from bertcli.tasks.multiple_choice import Chosen
from bertcli.tasks.regression import Value

SPAM = Classified(("spam",), ("ham", "spam"), np.array([0.0, np.log(3.0)]), multi_label=False)
TOPICS = Classified(("a", "b"), ("a", "b", "c"), -np.log([1 / 3, 1, 3]), multi_label=True)
PLACE = Tagged(("O", "B-place"), (Entity("Rome", "place", 3, 7, 0.5),))


def text(prediction: object, **columns: object) -> Predicted:
    example = TextExample("made.tsv, line 2", columns or {"text": "Wíth"}, ("Wíth",), None)
    return Predicted(example, prediction, ())  # pyright: ignore[reportArgumentType]


def readable(answer: Predicted) -> str:
    return answer.prediction.readable(answer.example)


def tagged(prediction: Tagged) -> Predicted:
    words, spans = ("to", "Rome"), ((0, 2), (3, 7))
    return Predicted(
        TaggedExample("here", {"text": "to Rome"}, ("to Rome",), words, spans, None), prediction, ()
    )


def written(separator: str, *answers: Predicted) -> str:
    file = io.StringIO()
    writer = AnswerTable(file, separator)
    for answer in answers:
        writer.write(answer.example.where, row_json(answer))
    return file.getvalue()


def table(*answers: Predicted) -> list[list[str]]:
    return [line.split("\t") for line in written("\t", *answers).splitlines()]


def test_the_columns_of_the_row_come_first_and_none_is_lost() -> None:
    answer = text(SPAM, id=7, label="ham")
    row = {"id": 7, "given_label": "ham", "label": "spam", "probabilities": {"ham": 0.25, "spam": 0.75}}
    assert list(row_json(answer).items()) == list(row.items())
    assert json.loads(json_line(answer)) == row
    assert "Wíth" in json_line(text(SPAM))


def test_a_column_that_is_called_given_already_stays_too() -> None:
    row = row_json(text(SPAM, label="ham", given_label="mine", image=b"\xff\xd8"))
    assert row["given_label"] == "mine"
    assert row["given_given_label"] == "ham"
    assert (row["label"], row["image"]) == ("spam", "ffd8")


def test_a_table_has_a_column_for_each_probability() -> None:
    names, row = table(text(SPAM))
    assert names == ["text", "label", "probabilities.ham", "probabilities.spam"]
    assert row == ["Wíth", "spam", "0.25", "0.75"]
    assert table(text(TOPICS))[1][1] == "a,b"
    assert table(text(Value(1.5), x=None)) == [["x", "value"], ["", "1.5"]]
    chosen = table(text(Chosen(1, [0.25, 0.75])))
    assert chosen[0][1:] == ["choice", "probabilities.0", "probabilities.1"]


def test_lists_of_objects_are_json_in_a_table() -> None:
    names, row = table(tagged(PLACE))
    entities = row[names.index("entities")].strip('"').replace('""', '"')
    assert json.loads(entities) == [{"text": "Rome", "type": "place", "start": 3, "end": 7, "score": 0.5}]


def test_the_cells_of_own_columns_stay_and_those_beside_them_run_no_formula() -> None:
    file = io.StringIO()
    writer = AnswerTable(file, "\t")
    writer.write("here", {"@text": "@ann see you", "label": "=1+1", "-x": 1}, own=["@text"])
    assert file.getvalue() == "@text\tlabel\t'-x\n@ann see you\t'=1+1\t1\n"


def test_a_column_with_the_name_of_a_probability_stays_beside_it() -> None:
    row = dict(zip(*table(text(SPAM, **{"probabilities.spam": "mine"})), strict=True))
    assert row["given_probabilities.spam"] == "mine"
    assert row["probabilities.spam"] == "0.75"


def test_labels_are_joined_as_they_were_divided() -> None:
    file = io.StringIO()
    AnswerTable(file, "\t", "|").write("here", {"label": ["a, b", "c"]})
    assert file.getvalue() == "label\na, b|c\n"


def test_a_table_refuses_a_column_that_the_first_row_does_not_have() -> None:
    assert table(text(SPAM, a=1, b=2), text(SPAM, a=3))[2][:2] == ["3", ""]
    with pytest.raises(UserError, match=r"made.tsv, line 2: has 'b', which the first row does not have; "):
        table(text(SPAM, a=1), text(SPAM, a=1, b=2))


@pytest.mark.parametrize("separator", SEPARATORS.values())
def test_a_field_is_quoted_where_it_must_be_and_a_line_ends_with_a_newline(separator: str) -> None:
    fields = ["a,b", "a\tb", 'say "so"', "two\nlines", "old\rmac", "plain", ""]
    out = written(separator, text(SPAM, **dict(zip("abcdefg", fields, strict=True))))
    assert "\r\n" not in out
    assert '"say ""so"""' in out
    assert '"old\rmac"' in out
    names, row = csv.reader(io.StringIO(out, newline=""), delimiter=separator)
    assert (names[:7], row[:7]) == (list("abcdefg"), fields)


@pytest.mark.parametrize(
    ("answer", "line"),
    [
        (text(SPAM), " 75.00%  spam  Wíth"),
        (text(TOPICS), "a 75.00%, b 50.00%  Wíth"),
        (text(Classified((), ("a",), -np.log([3.0]), multi_label=True)), "no label  Wíth"),
        (text(Value(4.5)), "    4.5000  Wíth"),
        (tagged(PLACE), "to Rome\n   50.00%  place       Rome"),
        (tagged(Tagged(("O", "O"), ())), "to Rome\n  no entities"),
    ],
)
def test_a_line_to_read(answer: Predicted, line: str) -> None:
    assert readable(answer) == line


def test_answers_and_choices_to_read() -> None:
    question = QuestionExample("here", {}, ("Who?", "It was he."), "1", None)
    found = Answered("he", 7, 9, 0.5, "he", 0.0)
    assert readable(Predicted(question, found, ())) == " 50.00%  he"
    none = Answered("", None, None, 0.75, "he", 1.0)
    assert readable(Predicted(question, none, ())) == " 75.00%  no answer in the text"
    choices = ChoiceExample("here", {}, ("A",), ("yes", "no"), None)
    assert readable(Predicted(choices, Chosen(1, [0.25, 0.75]), ())) == " 75.00%  no\n 25.00%  yes"
