"""JSON of doccano, Prodigy, spaCy and Label Studio, and brat's files: what is read, left out and refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from bertcli.config.task import TaskSettings
from bertcli.system.errors import UserError
from bertcli.tasks.examples import MarkedText
from bertcli.tasks.files import settings_found
from tests.tasks.reading import read, words, write, write_jsonl

TEXT = "Mia lives in Oslo."
FOUND = ((0, 3, "PER"), (13, 17, "LOC"))
OBJECTS = [{"start": start, "end": end, "label": label} for start, end, label in FOUND]


def spans(**given: Any) -> TaskSettings:
    return words(format="spans", **given)


def result(start: int, end: int, *labels: str, **more: Any) -> dict[str, Any]:
    return {"type": "labels", "value": {"start": start, "end": end, "labels": [*labels], **more}}


def studio(*results: Any, **more: Any) -> dict[str, Any]:
    return {"id": 1, "data": {"text": TEXT}, "annotations": [{"result": [*results]}], **more}


STUDIO = studio(result(0, 3, "PER", text="Mia"), result(13, 17, "LOC", text="Oslo"))
FILES = [
    {"id": 7, "text": TEXT, "label": [list(each) for each in FOUND], "Comments": []},
    {"text": TEXT, "entities": [{"label": x, "start_offset": a, "end_offset": b} for a, b, x in FOUND]},
    {"text": TEXT, "spans": OBJECTS, "label": "PER", "answer": "accept", "tokens": [{"text": "Mia"}]},
    {"text": TEXT, "ents": OBJECTS, "sents": [{"start": 0, "end": 18}]},
    {"text": TEXT, "label": [{"start": a, "end": b, "text": TEXT[a:b], "labels": [x]} for a, b, x in FOUND]},
    STUDIO,
]


@pytest.mark.parametrize("row", FILES)
@pytest.mark.parametrize("is_list", [False, True])
def test_each_tool_says_the_same(tmp_path: Path, row: dict[str, Any], is_list: bool) -> None:
    path = write_jsonl(tmp_path / "a.json", [row] if is_list else row)
    (example,) = read(path, spans())
    assert isinstance(example, MarkedText)
    assert (example.texts, example.mentions, example.columns) == ((TEXT,), FOUND, row)
    assert settings_found(words(), str(path)) == spans()
    (unlabeled,) = read(path, spans(), labeled=False)
    assert (unlabeled.texts, unlabeled.mentions) == ((TEXT,), None)


def test_other_files_are_no_spans(tmp_path: Path) -> None:
    path = write_jsonl(tmp_path / "a.jsonl", {"text": "a b", "label": ["O", "O"]})
    assert settings_found(words(label="label"), str(path)) == words(label="label", words="given")


def test_a_row_without_the_key_of_the_others_has_no_entities(tmp_path: Path) -> None:
    rows = [{"text": TEXT, "label": OBJECTS}, {"text": "It rains."}, {"text": "It snows."}]
    path, said = write_jsonl(tmp_path / "a.json", rows), list[str]()
    assert [each.mentions for each in read(path, spans(), note=said.append)] == [FOUND, (), ()]
    assert said == [
        f"{path}: 2 rows with a text and without label, labels, spans, ents or entities: read as texts "
        "without entities"
    ]
    with pytest.raises(UserError, match="no key holds spans"):
        read(write_jsonl(tmp_path / "b.jsonl", rows[1]), spans())


@pytest.mark.parametrize("other", [["news"], "news", []])
def test_the_key_with_spans_is_the_one_that_is_read(tmp_path: Path, other: Any) -> None:
    rows = [
        {"text": TEXT, "labels": other, "entities": OBJECTS},
        {"text": TEXT, "labels": other, "entities": []},
    ]
    path = write_jsonl(tmp_path / "a.jsonl", *rows)
    assert [each.mentions for each in read(path, spans())] == [FOUND, ()]


def test_keys_may_be_named_and_blanks_around_spans_are_left_out(tmp_path: Path) -> None:
    path = write_jsonl(tmp_path / "a.jsonl", {"body": TEXT, "ner": [[3, 13, "x"]], "label": []})
    assert read(path, spans(text="body", label="ner"))[0].mentions == ((4, 12, "x"),)


@pytest.mark.parametrize(
    ("rows", "line"),
    [
        (
            [{"text": TEXT, "spans": []}, {"text": TEXT, "spans": [], "answer": "reject"}],
            "left out 1 of 2 rows that were rejected or ignored in Prodigy",
        ),
        (
            [
                STUDIO,
                {**STUDIO, "annotations": [{"was_cancelled": True}]},
                {"data": {"text": TEXT}, "completions": [{"skipped": True, "result": []}]},
                {**STUDIO, "annotations": []},
            ],
            "left out 3 of 4 rows that nobody annotated in Label Studio",
        ),
        (
            [{"text": TEXT, "entities": OBJECTS, "relations": [{"id": 1}, {"id": 2}]}],
            "not read, since they are no spans: 2 relations",
        ),
        (
            [studio({"type": "choices", "value": {"choices": ["a", "b"]}}, {"type": "relation"})],
            "not read, since they are no spans: 1 results of type choices, 1 results of type relation",
        ),
    ],
)
def test_what_is_harmless_is_counted(tmp_path: Path, rows: list[Any], line: str) -> None:
    path, said = write_jsonl(tmp_path / "a.jsonl", *rows), list[str]()
    assert len(read(path, spans(), report=said.append)) == 1
    assert said == [f"{path}: {line}"]


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ({"text": TEXT}, "line 1: no key holds spans; its keys: text; expected one of label, labels, spans"),
        ({"text": TEXT, "label": "PER"}, "line 1, 'label': 'PER' is no list of spans; expected .start, end"),
        (
            {"text": TEXT, "label": [[0, 3]]},
            r"'label': '\[0, 3\]' is no span; expected \[start, end",
        ),
        ({"text": TEXT, "label": [[0, 3, 7]]}, "the label 7 of the span 0-3 is not a text"),
        ({"text": TEXT, "label": [[0, "3", "x"]]}, "the places 0 and '3' are not whole numbers"),
        (
            {"text": TEXT, "label": [[0, 19, "x"]]},
            r"the span 0-19 \(x\) is not in the text; .* 18 char",
        ),
        ({"text": TEXT, "label": [[5, 3, "x"]]}, "the span 5-3 .x. ends before it begins, or is empty"),
        ({"text": TEXT, "label": [[3, 4, "x"]]}, "the span 3-4 .x. covers white space alone"),
        (
            {"text": TEXT, "spans": [{"start": 0, "label": "x"}]},
            "a span without 'end'; its keys: start",
        ),
        ({"text": TEXT, "spans": [{"start": 0, "end": 3}]}, "a span without 'label'; its keys: start, end"),
        (studio(result(0, 3, "a", "b")), r"2 labels of one span \(a, b\); a word has one tag"),
        (
            studio(result(0, 3, "a", text="Bob")),
            "covers 'Mia', but the file says 'Bob'; it is of",
        ),
        (
            studio(annotations=[{"result": [result(0, 3, "a")]}, {"result": []}]),
            "2 annotations, which dif",
        ),
        (studio(annotations=[{"result": {}}]), r"annotations\[0\]: 'result' is no list of objects"),
        (studio(annotations="none"), "'annotations' is no list of objects"),
        ({**STUDIO, "data": {"body": TEXT}}, "data: no key 'text'; its keys: body"),
        (
            {"data": {"text": TEXT}, "predictions": [{"result": []}]},
            "rows but those left out that nobody anno",
        ),
        ([], r"a.jsonl: is empty; expected JSON objects|line 1: \[\] is not a JSON object|holds no rows"),
    ],
)
def test_a_row_that_cannot_be_read(tmp_path: Path, row: Any, message: str) -> None:
    with pytest.raises(UserError, match=message):
        read(write_jsonl(tmp_path / "a.jsonl", row), spans())


EMOJI = "🎉 Mia 👍🏽 lives in Oslo."


def units(text: str, *places: str) -> list[list[Any]]:
    """Spans of these parts in UTF-16 units."""
    found = []
    for part in places:
        start = len(text[: text.index(part)].encode("utf-16-le")) // 2
        found.append([start, start + len(part.encode("utf-16-le")) // 2, "x"])
    return found


def test_units_are_found_by_what_fits(tmp_path: Path) -> None:
    said: list[str] = []
    path = write_jsonl(tmp_path / "a.jsonl", {"text": EMOJI, "label": units(EMOJI, "Mia", "Oslo")})
    (example,) = read(path, spans(), note=said.append)
    assert [EMOJI[a:b] for a, b, _ in example.mentions] == ["Mia", "Oslo"]
    assert "are read as UTF-16 units, as JavaScript counts (task.offsets: utf-16)" in said[0]
    with pytest.raises(UserError, match=r"line 1: the span 21-25 \(x\) is not in the text"):
        read(path, spans(offsets="characters"))

    path = write_jsonl(tmp_path / "b.jsonl", {"text": EMOJI, "label": [[2, 5, "x"]]})
    assert read(path, spans())[0].mentions == ((2, 5, "x"),)
    with pytest.raises(
        UserError, match=r"the span 1-4 \(x\) ends inside a character; if it counts characters"
    ):
        read(
            write_jsonl(tmp_path / "c.jsonl", {"text": EMOJI, "label": [[1, 4, "x"]]}),
            spans(offsets="utf-16"),
        )
    said_text = studio(result(2, 5, "x", text="Mia"))
    said_text["data"]["text"] = "🎉Mia Mia"
    assert read(write_jsonl(tmp_path / "d.jsonl", said_text), spans())[0].mentions == ((1, 4, "x"),)


def document(
    folder: Path, ann: str | None, text: str | None = "Mia lives\nin Oslo.", name: str = "a"
) -> Path:
    folder.mkdir(exist_ok=True)
    for content, suffix in ((text, ".txt"), (ann, ".ann")):
        if content is not None:
            write(folder / f"{name}{suffix}", content)
    return folder


ANN = "T1\tPER 0 3\tMia\n\nR1\tlives Arg1:T1 Arg2:T2\t\nT2\tLOC 13 17\tOslo\n#1\tNote T1\tx\nA1\tSure T1\n"


def test_brat_is_read_by_folder_and_by_document(tmp_path: Path) -> None:
    folder, said = document(tmp_path / "notes", ANN), list[str]()
    document(folder, "T1\tX 0 5;6 8\tlives in\n", "lives\nin", name="b")
    first, second = read(folder, spans(), report=said.append)
    assert (first.mentions, first.where) == (FOUND, str(folder / "a.txt"))
    assert first.columns == {"document": "a", "text": "Mia lives\nin Oslo."}
    assert second.mentions == ((0, 8, "X"),)
    assert said == [f"{folder}: not read, since they are no spans: 1 relations, 1 notes, 1 attributes"]
    assert settings_found(words(), str(folder)) == spans()
    for name in ("a.ann", "a.txt"):
        assert [each.mentions for each in read(folder / name, words(words="tokenizer"))] == [FOUND]


@pytest.mark.parametrize(
    ("ann", "text", "message"),
    [
        (
            "T1\tPER 0 3;5 9\tMia ives\n",
            "Mia lives",
            r"a.ann, line 1: the entity T1 has gaps \(0 3;5 9\)",
        ),
        ("T1 PER 0 3\n", "Mia", "a.ann, line 1: 'T1 PER 0 3' is no line of brat's; expected T1, a tab, TYPE"),
        ("T1\tPER 0\tMia\n", "Mia", "a.ann, line 1: '0' are not places; expected START END"),
        ("T1\tPER 0 3\tBob\n", "Mia", r"a.txt: the span 0-3 \(PER\) covers 'Mia', but the file says 'Bob'"),
        ("T1\tPER 0 9\tMia\n", "Mia", r"a.txt: the span 0-9 \(PER\) is not in the text; the text has 3"),
        ("T1\tPER 0 3\tMia\n", None, "a.ann: its text a.txt is missing; brat keeps both beside each other"),
        (
            None,
            "Mia",
            "a.txt: its annotations a.ann are missing; those of a text without entities are",
        ),
    ],
)
def test_a_document_of_brat_that_cannot_be_read(
    tmp_path: Path, ann: str | None, text: str | None, message: str
) -> None:
    folder = document(tmp_path / "notes", ann, text)
    document(folder, "", "Fine.", name="b")
    with pytest.raises(UserError, match=message):
        read(folder, spans())


def test_words_of_a_model_of_other_files_stay(tmp_path: Path) -> None:
    path = write_jsonl(tmp_path / "a.jsonl", {"text": TEXT, "label": [[0, 3, "x"]]})
    assert read(path, words())[0].tags[0] == "B-x"
