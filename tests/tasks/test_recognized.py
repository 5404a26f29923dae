"""Columns, labels and the type of a task are recognized in the file itself, as `bertcli init` asks."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from bertcli.advice.init.task import can_be_labeled, find_task, read_table
from bertcli.system.errors import UserError
from tests.advice.init.files import MESSAGES, messages, seen, write_csv, write_jsonl

PAIRS = [(f"The {i} men walk home.", f"Some {i} people are walking.", i % 2) for i in range(20)]


def keys(path: Path) -> dict[str, Any]:
    return find_task(seen(path)).keys


def test_a_table_with_a_header(tmp_path: Path) -> None:
    path = write_csv(tmp_path / "spam.csv", [("label", "message"), *messages(30)])
    assert keys(path) == {"type": "classification", "text": "message", "label": "label"}


def test_a_table_without_a_header_gets_names(tmp_path: Path) -> None:
    found = find_task(seen(write_csv(tmp_path / "spam.tsv", messages(30), "\t")))
    assert found.keys == {
        "type": "classification",
        "columns": ["column0", "text"],
        "text": "text",
        "label": "column0",
    }
    assert "the first line is data" in found.comments["columns"]


def test_columns_without_a_name_do_not_hide_the_header(tmp_path: Path) -> None:
    rows = [("v1", "v2", "", ""), *((label, text, "", "") for label, text in messages(30))]
    assert keys(write_csv(tmp_path / "spam.csv", rows))["label"] == "v1"


def test_a_table_whose_suffix_says_nothing_names_its_format(tmp_path: Path) -> None:
    path = write_csv(tmp_path / "spam.data", [("label", "message"), *messages(30)])
    assert keys(path)["format"] == "csv"


def test_a_separator_is_said_where_a_run_would_take_another(tmp_path: Path) -> None:
    usual = write_csv(tmp_path / "spam.csv", [("label", "message"), *messages(30)], ";")
    assert keys(usual) == {"type": "classification", "text": "message", "label": "label"}
    commas = write_csv(tmp_path / "commas.csv", [("ham", "Well, yes, no."), *messages(30)], ";")
    assert keys(commas)["separator"] == ";"
    bars = find_task(seen(write_csv(tmp_path / "b.txt", [("label", "message"), *messages(30)], "|")))
    assert (bars.keys["format"], bars.keys["separator"]) == ("csv", "|")
    assert bars.comments["separator"] == "vertical bars divide the lines into 2 fields"
    two = write_csv(tmp_path / "two.csv", [("label", "message"), *messages(2)], "|")  # by its header alone
    assert read_table(seen(two)).keys == {"separator": "|"}


def test_a_tsv_may_have_other_separators(tmp_path: Path) -> None:
    found = keys(write_csv(tmp_path / "spam.tsv", [("label", "message"), *messages(30)]))
    assert (found["format"], found["text"]) == ("csv", "message")


def test_lines_of_fasttext(tmp_path: Path) -> None:
    lines = [f"__label__{label} {text}\n" for label, text in messages(30)]
    (tmp_path / "x.txt").write_text("".join(lines))
    assert keys(tmp_path / "x.txt") == {"type": "classification", "format": "fasttext"}
    (tmp_path / "x.txt").write_text("".join([*lines, "__label__ham __label__late I will be late\n"]))
    found = find_task(seen(tmp_path / "x.txt"))
    assert found.keys["multi_label"] is True
    assert found.comments["multi_label"] == "1 of 31 lines have several labels or none; false: one a line"


def test_lines_of_fasttext_may_have_damaged_bytes(tmp_path: Path) -> None:
    lines = "".join(f"__label__{label} {text} für\n" for label, text in messages(30)).encode()
    (tmp_path / "x.txt").write_bytes(lines + b"__label__ham caf\xe9 noir\n")
    assert keys(tmp_path / "x.txt") == {
        "type": "classification",
        "format": "fasttext",
        "bad_bytes": "replace",
    }


def test_lines_of_trec(tmp_path: Path) -> None:
    names = ["DESC:manner", "HUM:ind", "DESC:def"]
    (tmp_path / "x.label").write_text(
        "".join(f"{names[i % 3]} {text} ?\n" for i, (_, text) in enumerate(messages(30))), encoding="cp1252"
    )
    found = find_task(seen(tmp_path / "x.label"))
    assert found.keys == {"type": "classification", "format": "trec", "label": "label"}
    assert found.comments["label"] == "the first part: 2 labels; or fine: both parts, 3 labels"


def test_a_pair_by_names_and_a_score(tmp_path: Path) -> None:
    rows = [("index", "sentence1", "sentence2", "score"), *((i, *p[:2], i / 7) for i, p in enumerate(PAIRS))]
    found = find_task(seen(write_csv(tmp_path / "sts.tsv", rows, "\t")))
    assert found.keys == {"type": "regression", "text": ["sentence1", "sentence2"], "label": "score"}
    assert "or sentence" in found.comments["text"]


def test_two_texts_without_names_are_a_pair(tmp_path: Path) -> None:
    assert len(keys(write_csv(tmp_path / "pairs.tsv", PAIRS, "\t"))["text"]) == 2


def test_of_several_texts_one_is_taken_and_the_others_are_named(tmp_path: Path) -> None:
    rows = [
        ("heading", "body", "label"),
        *((f"Title of number {i}", text, label) for i, (label, text) in enumerate(messages(30))),
    ]
    found = find_task(seen(write_csv(tmp_path / "x.csv", rows)))
    assert found.keys["text"] == "body"
    assert "or heading; or a pair: [body, heading]" in found.comments["text"]


def test_codes_with_an_underscore_are_no_numbers(tmp_path: Path) -> None:
    rows = [
        ("code", "text"),
        *((f"{1 + i % 3}_{1 + i % 2}", text) for i, (_, text) in enumerate(messages(30))),
    ]
    found = find_task(seen(write_csv(tmp_path / "x.csv", rows)))
    assert (found.keys["type"], found.keys["label"]) == ("classification", "code")


def test_whole_numbers_are_classes_that_may_be_measures(tmp_path: Path) -> None:
    rows = [("stars", "review"), *((i % 5, text) for i, (_, text) in enumerate(messages(30)))]
    found = find_task(seen(write_csv(tmp_path / "x.csv", rows)))
    assert found.keys["type"] == "classification"
    assert "or regression" in found.comments["type"]


def test_the_column_with_the_fewest_values_is_the_label_where_no_name_tells(tmp_path: Path) -> None:
    rows = [(f"s{i % 9}", i % 2, text) for i, (_, text) in enumerate(messages(40))]
    found = find_task(seen(write_csv(tmp_path / "cola.tsv", rows, "\t")))
    assert found.keys["label"] == "column1"
    assert "or column0" in found.comments["label"]


def test_several_labels_a_row(tmp_path: Path) -> None:
    lists = [{"text": text, "labels": ["a", "b"][: i % 3]} for i, (_, text) in enumerate(messages(30))]
    assert keys(write_jsonl(tmp_path / "x.jsonl", lists))["multi_label"] is True
    topics = ["art", "war", "art,war", "sea"]
    rows = [("topic", "text"), *((topics[i % 4], text) for i, (_, text) in enumerate(messages(40)))]
    assert keys(write_csv(tmp_path / "y.tsv", rows, "\t"))["multi_label"] is True


FLAGS = ("toxic", "insult")


@pytest.mark.parametrize(
    ("cells", "more"),
    [
        ([("0", "1"), ("1", "0")], {}),
        ([("yes", "no"), ("no", "yes")], {}),
        ([("True", "False"), ("False", "True")], {}),
        ([("x", ""), ("", "x"), ("", "")], {"ticks": True}),
        ([("1", ""), ("", "1")], {"ticks": True}),
        ([("0", "1"), ("1", "0"), ("", "")], {"skip_labels": [""]}),
    ],
)
def test_a_column_for_each_label(tmp_path: Path, cells: list[Any], more: dict[str, Any]) -> None:
    rows = [(text, *cells[number % len(cells)]) for number, (_, text) in enumerate(messages(30))]
    found = find_task(seen(write_csv(tmp_path / "a.csv", [("message", *FLAGS), *rows])))
    assert found.keys == {"type": "classification", "text": "message", "label": [*FLAGS], **more}
    assert found.comments["label"] == "a yes or no in a column for each; or one of them, as label: toxic"
    if more.get("skip_labels"):
        assert found.comments["skip_labels"].startswith('"": 10 rows have no label yet; bertcli suggest says')


def test_some_empty_cells_among_0_and_1_hide_no_label(tmp_path: Path) -> None:
    rows = [
        (text, number % 2, "" if number == 3 else number % 3 % 2)
        for number, (_, text) in enumerate(messages(30))
    ]
    found = keys(write_csv(tmp_path / "a.csv", [("message", *FLAGS), *rows]))
    assert found["label"] == [*FLAGS]


def test_most_rows_may_have_no_label_yet(tmp_path: Path) -> None:
    rows = [(text, label if number < 8 else "") for number, (label, text) in enumerate(messages(60))]
    found = find_task(seen(write_csv(tmp_path / "a.csv", [("message", "label"), *rows])))
    assert found.keys["skip_labels"] == [""]
    assert found.comments["skip_labels"].startswith('"": 52 rows have no label yet')


def test_an_object_of_labels(tmp_path: Path) -> None:
    rows = [
        {"text": text, "cats": {"ham": float(label == "ham"), "spam": float(label != "ham")}}
        for label, text in messages(30)
    ]
    path = write_jsonl(tmp_path / "a.jsonl", rows)
    assert can_be_labeled(seen(path))
    assert keys(path) == {"type": "classification", "text": "text", "label": "cats", "multi_label": True}


def test_tagged_words_in_json_lines(tmp_path: Path) -> None:
    rows = [{"tokens": ["Anna", "sleeps"], "ner_tags": ["B-PER", "O"]}] * 5
    assert keys(write_jsonl(tmp_path / "x.jsonl", rows)) == {
        "type": "token-classification",
        "text": "tokens",
        "label": "ner_tags",
    }


def test_choices_in_columns_and_in_a_list(tmp_path: Path) -> None:
    names = ("id", "question", "ending0", "ending1", "ending2", "label")
    rows = [names, *((i, f"What comes after number {i}?", "one", "two", "three", i % 3) for i in range(20))]
    look = find_task(seen(write_csv(tmp_path / "x.csv", rows)))
    found = look.keys
    assert (found["type"], found["choices"]) == ("multiple-choice", ["ending0", "ending1", "ending2"])
    assert look.comments["type"] == "question, 3 columns of choices, and which of them is right"
    listed = [{"question": f"What is number {i}?", "choices": ["a", "b"], "answer": i % 2} for i in range(20)]
    look = find_task(seen(write_jsonl(tmp_path / "x.jsonl", listed)))
    found = look.keys
    assert (found["type"], found["choices"], found["label"]) == ("multiple-choice", "choices", "answer")
    assert look.comments["type"] == "question, a list of choices, and which of them is right"


@pytest.mark.parametrize(
    ("labels", "first", "why"),
    [
        ([0, 1, 2], None, None),
        ([1, 2, 3], 1, "the labels count the choices from 1"),
        ([1, 2, 1], 0, "no label tells whether the first choice is 0 or 1; or 1"),
        (["A", "B", "C"], None, None),
    ],
)
def test_the_number_of_the_first_choice(tmp_path: Path, labels: list[Any], first: int, why: str) -> None:
    names = ("question", "ending0", "ending1", "ending2", "label")
    rows = [names, *((f"What comes after {i}?", "one", "two", "six", labels[i % 3]) for i in range(20))]
    found = find_task(seen(write_csv(tmp_path / "x.csv", rows)))
    assert found.keys.get("first_choice") == first
    assert found.comments.get("first_choice") == why


def test_two_numbered_texts_before_the_choices_are_read_both(tmp_path: Path) -> None:
    names = ("sent1", "sent2", "ending0", "ending1", "ending2", "label")
    rows = [names, *((f"She opens door {i}.", "Then", "he", "she", "it", i % 3) for i in range(20))]
    assert keys(write_csv(tmp_path / "x.csv", rows))["text"] == ["sent1", "sent2"]


def test_conll_and_squad_are_told_by_their_form(tmp_path: Path) -> None:
    (tmp_path / "x.txt").write_text("Anna B-PER\nsleeps O\n\nRome B-LOC\nsleeps O\n\n" * 3)
    assert keys(tmp_path / "x.txt") == {"type": "token-classification"}
    (tmp_path / "x.json").write_text('{"data": [{"paragraphs": [{"context": "c", "qas": []}]}]}')
    assert keys(tmp_path / "x.json") == {"type": "question-answering"}


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([("text",), *((text,) for _, text in messages(9))], "has one column; expected a text and its label"),
        (
            [("id", "text"), *((i, text) for i, (_, text) in enumerate(messages(99)))],
            "no column holds labels",
        ),
        ([("a", "b"), *((i % 2, i % 3) for i in range(9))], "no column holds texts; its columns: a, b"),
    ],
)
def test_tables_without_a_task_are_refused(tmp_path: Path, rows: list[Any], message: str) -> None:
    with pytest.raises(UserError, match=message):
        keys(write_csv(tmp_path / "x.csv", rows))


@pytest.mark.parametrize(
    ("row", "is_labeled"),
    [
        (lambda i: {"text": f"{MESSAGES[i % 4]} {i}"}, False),
        (lambda i: {"text": f"{MESSAGES[i % 4]} {i}", "label": i % 2}, True),
        (lambda i: {"text": f"{MESSAGES[i % 4]} {i}", "kind": "ab"[i % 2]}, True),
        (lambda i: {"text": f"{MESSAGES[i % 4]} {i}", "lang": ["en", "de"][i % 2]}, False),
        (lambda i: {"id": i, "body": f"{MESSAGES[i % 4]} {i}", "source": "ab"[i % 2], "url": str(i)}, False),
        (lambda i: {"tokens": ["Anna"], "tags": ["B-PER"]}, True),
    ],
)
def test_labels_tell_a_labeled_file_from_a_corpus(tmp_path: Path, row: Any, is_labeled: bool) -> None:
    path = write_jsonl(tmp_path / "x.jsonl", [row(i) for i in range(30)])
    assert can_be_labeled(seen(path)) == is_labeled
