"""Labels of many forms make a task, or are named; no such file is taken for a corpus."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from bertcli.advice.init.init import init
from bertcli.advice.init.labeled import look_at_rows
from bertcli.advice.init.task import can_be_labeled, doubtful_columns, find_task
from bertcli.advice.init.written import Request
from bertcli.system.errors import UserError
from tests.advice.init.files import MESSAGES, seen, write_csv, write_jsonl


def keys(path: Path) -> dict[str, Any]:
    return find_task(seen(path)).keys


def text(i: int) -> str:
    return f"{MESSAGES[i % 4]} {i}"


def words(i: int) -> list[str]:
    return [f"Mia{i}", *["runs"] * (i % 3 + 1)]


def spelled(labels: list[str], i: int) -> str:
    """A label, or all of them, as some rows have them."""
    return "|".join(labels) if i % 3 == 0 else labels[i % 2]


ANSWERS = {"text": ["Anna"], "answer_start": [0]}
ABCD = {name: f"{name} thing" for name in "abcd"}
TAGS = ["B-PER", *["O"] * 3]
SWAG = {"video-id": "v", "sent1": "The man sits down at the table.", "sent2": "He"} | {
    f"ending{number}": f"ends {number}" for number in range(4)
}


SPANS = {"type": "token-classification", "format": "spans"}


@pytest.mark.parametrize(
    ("row", "found"),
    [
        (lambda i: {"text": text(i), "labels": [0.0, 1.0, float(i % 2)]}, {"label_names": 3}),
        (lambda i: {"text": text(i), "labels": [i % 2, 1 - i % 2]}, {"label_names": 2}),
        (lambda i: {"text": text(i), "kinds": [bool(i % 2), True, True]}, {"label_names": 3}),
        (lambda i: {"text": text(i), "label": f"[1, 0, {i % 2}]"}, {"label_names": 3}),
        (lambda i: {"text": text(i), "label": f"1 0 {i % 2}"}, {"label_names": 3}),
        (lambda i: {"text": text(i), "label": ["['a']", "['a', 'b']"][i % 2]}, {"multi_label": True}),
        (lambda i: {"text": text(i), "label": [3, 17][: i % 2 + 1]}, {"multi_label": True}),
        (lambda i: {"text": text(i), "label": spelled(["a", "b"], i)}, {"label_separator": "|"}),
        (
            lambda i: {"text": text(i), "food": i % 2, "art": 1, "war": 1 - i % 2},
            {"label": ["food", "art", "war"]},
        ),
        (lambda i: {"text": text(i), "bad": bool(i % 2), "good": i % 3 == 0}, {"label": ["bad", "good"]}),
        (lambda i: {"text": text(i), "spam": i % 2, "long": i % 3 % 2}, {"label": "spam"}),
        (lambda i: {"text": text(i), "label": i % 3, "a": 0, "b": i % 2, "c": i % 2}, {"label": "label"}),
        (lambda i: {"text": text(i), "label": i % 4 - 1}, {"skip_labels": ["-1"]}),
        (lambda i: {"text": text(i), "label": ["yes", "no", "-"][i % 3]}, {"skip_labels": ["-"]}),
        (
            lambda i: {"question": text(i), **ABCD, "answer": i % 4 + 1},
            {"first_choice": 1, "text": "question"},
        ),
        (lambda i: {"question": text(i), **ABCD, "answer": i % 4}, {"type": "multiple-choice"}),
        (lambda i: {"question": text(i), **ABCD, "answer": "ABCD"[i % 4]}, {"choices": list("abcd")}),
        (lambda i: {"question": text(i), **ABCD, "answer": "abcd"[i % 4]}, {"type": "multiple-choice"}),
        (lambda i: {"question": text(i), "options": "['x', 'y']", "label": i % 2}, {"choices": "options"}),
        (
            lambda i: {"context": text(i), "question": f"Why {i}?", **ABCD, "answer": i % 4},
            {"text": ["context", "question"]},
        ),
        (lambda i: SWAG | {"sent1": text(i), "label": i % 4}, {"text": ["sent1", "sent2"]}),
        (
            lambda i: {"text": " ".join(words(i)), "labels": " ".join(TAGS[: len(words(i))])},
            {"type": "token-classification"},
        ),
        (lambda i: {"tokens": str(words(i)), "tags": str(TAGS[: len(words(i))])}, {"label": "tags"}),
        (
            lambda i: {"tokens": words(i), "pos": ["NOUN", *["VERB"] * (len(words(i)) - 1)]},
            {"tag_scheme": "plain"},
        ),
        (
            lambda i: {
                "tokens": words(i),
                "pos_tags": ["X"] * len(words(i)),
                "ner_tags": TAGS[: len(words(i))],
            },
            {"label": "ner_tags"},
        ),
        (
            lambda i: {"question": text(i), "context": "Anna sat.", "answers": ANSWERS},
            {"type": "question-answering"},
        ),
        (lambda i: {"id": i, "text": text(i), "label": [[0, 5, "PER"]] if i else []}, SPANS),
        (
            lambda i: {"body": text(i), "ner": [{"label": "PER", "start": 0, "end": 5}]},
            {**SPANS, "label": "ner"},
        ),
        (
            lambda i: {
                "text": text(i),
                "tokens": [{"text": "I", "start": 0, "end": 1, "id": 0}],
                "spans": [{"start": 0, "end": 5, "label": "PER"}],
                "answer": ["accept", "reject"][i % 2],
            },
            SPANS,
        ),
        (
            lambda i: {
                "data": {"id": "7", "body": text(i)},
                "annotations": [{"result": [{"value": {"start": 0, "end": 5, "labels": ["PER"]}}]}],
            },
            {**SPANS, "text": "body"},
        ),
        (
            lambda i: {
                "question": text(i),
                "context": "Anna sat.",
                "spot": [{"text": "Anna", "answer_start": 0}],
            },
            {"label": "spot"},
        ),
    ],
)
def test_labels_of_other_forms_make_a_task(tmp_path: Path, row: Any, found: dict[str, Any]) -> None:
    rows = [row(i) for i in range(24)]
    path = write_jsonl(tmp_path / "x.jsonl", rows)
    assert can_be_labeled(seen(path))
    given = keys(path)
    given["label_names"] = len(given.get("label_names", []))
    assert {name: given[name] for name in found} == found
    train = look_at_rows(str(path), None, find_task(seen(path)).keys, test=(), report=print).keys
    assert "skip_bad" not in train
    if not any(isinstance(value, list | dict) for value in rows[0].values()):  # a table of text says the same
        table = write_csv(tmp_path / "x.csv", [list(rows[0]), *(list(each.values()) for each in rows)])
        assert keys(table) == find_task(seen(path)).keys


@pytest.mark.parametrize(
    ("row", "message"),
    [
        (
            {"id": 1, "data": {"text": text(0)}, "annotations": [{"result": []}]},
            "is an export of Label Studio without spans",
        ),
        (
            {"tokens": ["Mia", "runs"], "ner_tags": [1, 0]},
            r"task.label_names: \[O, B-PER, ...\].* from 0 to 1",
        ),
        (
            {"question": "Who?", "context": text(0), "answers": ["Anna"]},
            "not where in the context they begin",
        ),
        (
            {"context": text(0), "qas": [{"question": "Who?", "answers": []}]},
            "which are read from SQuAD JSON",
        ),
    ],
)
def test_what_cannot_be_read_is_named_and_is_no_corpus(tmp_path: Path, row: Any, message: str) -> None:
    path = write_jsonl(tmp_path / "x.jsonl", [row] * 9)
    with pytest.raises(UserError, match=message):
        find_task(seen(path))
    with pytest.raises(UserError, match=message):
        init([str(path)], tmp_path / "x.yaml", Request(minutes=1.0), report=lambda line: None)


def test_decisions_of_prodigy_are_no_labels(tmp_path: Path) -> None:
    rows = [{"text": text(i), "label": "a", "answer": ["accept", "reject"][i % 2]} for i in range(9)]
    with pytest.raises(UserError, match="'answer' holds decisions of Prodigy"):
        keys(write_jsonl(tmp_path / "x.jsonl", rows))


def test_columns_of_a_corpus_that_may_be_labels_are_named(tmp_path: Path) -> None:
    rows = [
        {"text": text(i), "kinds": {"a": 1}, "meta": {"b": 2}, "id": i, "class": "same"} for i in range(9)
    ]
    path = write_jsonl(tmp_path / "x.jsonl", rows)
    assert not can_be_labeled(seen(path))
    assert doubtful_columns(seen(path)) == ["kinds", "class"]


CONLL_U = """# text = Mia runs
1\tMia\tMia\tPROPN\tNN\t_\t2\tnsubj\t_\t_
2\truns\trun\tVERB\tVB\t_\t0\troot\t_\t_

"""


@pytest.mark.parametrize(
    ("sentence", "found"),
    [
        ("0\tDie\tO\tO\n0\tUni\tB-ORG\tO\n0\tMarburg\tI-ORG\tB-LOC\n\n", {"label": 2}),  # outer and inner
        ("U.N. NNP I-NP I-ORG\nsaid VBD I-VP O\n. . O O\n\n", {}),  # chunks are no entities
        ("Anna NNP I-NP\nsat VBD I-VP\n. . O\n\n", {}),  # but where there is nothing else
        ("Anna B-PER 17\nsat O 4\n\n", {"label": 1}),
        (CONLL_U, {"label": 3, "tag_scheme": "plain"}),
        ("Anna NOUN\nsat VERB\ndown VERB\n\n", {"tag_scheme": "plain"}),
    ],
)
def test_the_column_of_tags(tmp_path: Path, sentence: str, found: dict[str, Any]) -> None:
    (tmp_path / "x.txt").write_text(sentence * 20)
    given = find_task(seen(tmp_path / "x.txt")).keys
    assert given == {"type": "token-classification"} | found
    assert look_at_rows(str(tmp_path / "x.txt"), None, given, test=(), report=print).train
