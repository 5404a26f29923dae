"""Entities in the files of annotation tools: written as the tool has them, and read again exactly."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from bertcli.inference.annotations import TOOLS, annotations, check_tool
from bertcli.system.errors import UserError
from bertcli.tasks.examples import MarkedText, Mention
from tests.tasks.reading import read, words

TEXT = "🎉 Mia lives\nin Oslo."
FOUND = (Mention(2, 5, "PER"), Mention(6, 14, "creative work"), Mention(15, 19, "LOC"))
COLUMNS = {"id": 7, "text": TEXT, "label": [[0, 1, "old"]], "_task_hash": 3, "answer": "accept", "by": "Bo"}


def written(tool: str, path: Path, *rows: MarkedText, **given: Any) -> Path:
    with annotations(tool, path, words(format="spans", **given)) as write:
        for row in rows:
            write(row, row.mentions or ())
    return path


def marked(*mentions: Mention, **columns: Any) -> MarkedText:
    return MarkedText("here", columns, (TEXT,), mentions)


OBJECTS = [{"start": start, "end": end, "label": label} for start, end, label in FOUND]


@pytest.mark.parametrize(
    ("tool", "row"),
    [
        ("doccano", {"id": 7, "by": "Bo", "text": TEXT, "label": [[s + 1, e + 1, t] for s, e, t in FOUND]}),
        ("prodigy", {"text": TEXT, "spans": OBJECTS, "meta": {"id": 7, "by": "Bo"}}),
        ("spacy", {"text": TEXT, "ents": OBJECTS, "id": 7, "by": "Bo"}),
    ],
)
def test_json_lines_of_a_tool(tmp_path: Path, tool: str, row: dict[str, Any]) -> None:
    path = written(tool, tmp_path / "a.jsonl", marked(*FOUND, **COLUMNS), marked())
    first, second = map(json.loads, path.read_text(encoding="utf-8").splitlines())
    assert first == row
    assert second["text"] == TEXT
    unit = "utf-16" if tool == "doccano" else "characters"
    again = read(path, words(format="spans", offsets=unit))
    assert [each.mentions for each in again] == [FOUND, ()]


def test_a_task_of_label_studio_has_a_prediction(tmp_path: Path) -> None:
    path = written(
        "label-studio", tmp_path / "a.json", marked(*FOUND, data={"text": TEXT, "by": "Bo"}), marked()
    )
    first, second = json.loads(path.read_text(encoding="utf-8"))
    assert first["data"] == {"by": "Bo", "text": TEXT}
    assert second["predictions"][0]["result"] == []
    result = first["predictions"][0]["result"][0]
    assert {key: result[key] for key in ("from_name", "to_name", "type", "value")} == {
        "from_name": "label",
        "to_name": "text",
        "type": "labels",
        "value": {"start": 2, "end": 5, "labels": ["PER"]},
    }
    done = [{"data": first["data"], "annotations": first["predictions"]}]
    path.write_text(json.dumps(done), encoding="utf-8")
    assert read(path, words(format="spans"))[0].mentions == FOUND


def test_documents_of_brat_have_their_names_or_numbers(tmp_path: Path) -> None:
    rows = [marked(*FOUND, document="a/b"), marked(document="a/b"), marked()]
    folder = written("brat", tmp_path / "new", *rows)
    assert [each.name for each in sorted(folder.glob("*.txt"))] == ["000002.txt", "000003.txt", "a-b.txt"]
    lines = (folder / "a-b.ann").read_text(encoding="utf-8")
    assert lines == "T1\tPER 2 5\tMia\nT2\tcreative_work 6 11;12 14\tlives in\nT3\tLOC 15 19\tOslo\n"
    *_, last = read(folder, words(format="spans"))
    assert [each[:2] for each in last.mentions] == [each[:2] for each in FOUND]
    numbered = [marked(document=name) for name in ("000002", "x", "x", "000002", "000004")]
    assert len([*written("brat", tmp_path / "more", *numbered).glob("*.txt")]) == len(numbered)


def test_offsets_count_what_the_tool_counts(tmp_path: Path) -> None:
    path = written("doccano", tmp_path / "a.jsonl", marked(FOUND[0]), offsets="characters")
    assert json.loads(path.read_text(encoding="utf-8"))["label"] == [[2, 5, "PER"]]
    path = written("spacy", tmp_path / "b.jsonl", marked(FOUND[0], text="another"), offsets="utf-16")
    row = json.loads(path.read_text(encoding="utf-8"))
    assert (row["text"], row["ents"][0]["start"]) == (
        TEXT,
        2,
    )  # spaCy counts characters, wherever it was learned


@pytest.mark.parametrize("tool", sorted({*TOOLS} - {"brat"}))
def test_no_rows_are_a_file_too(tmp_path: Path, tool: str) -> None:
    content = written(tool, tmp_path / "a.json").read_text(encoding="utf-8")
    assert content == ("[]\n" if tool == "label-studio" else "")


@pytest.mark.parametrize(
    ("tool", "name", "message"),
    [
        (
            "x",
            "a.jsonl",
            "--annotations x: expected doccano, prodigy, spacy, label-studio or",
        ),
        ("doccano", "a.csv", "a.csv: the suffix selects the format; give one of .jsonl"),
        ("label-studio", "a.jsonl", "a.jsonl: the suffix selects the format; give one of .json"),
        ("brat", None, "--annotations brat: writes a .txt and an .ann for each text; name their folder with"),
        ("brat", ".", "exists already, and is left as it is; name a new folder for brat's files"),
    ],
)
def test_what_cannot_be_written(tmp_path: Path, tool: str, name: str | None, message: str) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(UserError, match=message):
        check_tool(tool, None if name is None else tmp_path / name)
