"""`bertcli suggest`: rows of a file without labels, with the model's answers, in every form of output."""

from __future__ import annotations

import csv
import io
import itertools
import json
from pathlib import Path

import pytest

WORDS = ("cat", "dog", "mat", "house", "night", "dark", "sat", "ran", "was", "she")
TEXTS = [" ".join(words) for words in itertools.combinations(WORDS, 3)]


@pytest.fixture
def pool(tmp_path: Path) -> Path:
    lines = [json.dumps({"id": number, "text": text, "label": ""}) for number, text in enumerate(TEXTS)]
    path = tmp_path / "pool.jsonl"
    path.write_text("\n".join(lines) + "\n")
    return path


def test_rows_with_answers_the_first_ones_are_the_best(run_bertcli, models, pool):
    code, out, err = run_bertcli("suggest", models / "multi-label", pool, "-n", 6, "--json")
    assert (code, err) == (0, "")
    rows = [json.loads(line) for line in out.splitlines()]
    assert len(rows) == 6
    assert list(rows[0]) == ["id", "text", "label", "suggested_label", "probabilities", "uncertainty"]
    assert all(row["text"] == TEXTS[row["id"]] for row in rows)
    assert rows[0]["uncertainty"] == max(row["uncertainty"] for row in rows)
    _, people, _ = run_bertcli("suggest", models / "multi-label", pool, "-n", 6)
    assert people.splitlines()[0].startswith(f"{rows[0]['uncertainty']:.4f}  ")
    assert rows[0]["text"] in people.splitlines()[0]


def test_a_table_is_written(run_bertcli, models, pool, tmp_path):
    path = tmp_path / "next.csv"
    code, out, _ = run_bertcli("suggest", models / "multi-label", pool, "-n", 2, "--output", path)
    assert (code, out) == (0, "")
    rows = list(csv.DictReader(io.StringIO(path.read_text())))
    assert len(rows) == 2
    assert {"text", "label", "probabilities.red", "uncertainty"} <= rows[0].keys()


def test_a_table_has_the_texts_as_they_are(run_bertcli, models, tmp_path):
    texts = {"@cat see you", "=1+1 dog", "-mat", "+house", "'night"}
    (tmp_path / "pool.jsonl").write_text("\n".join(json.dumps({"text": text}) for text in texts))
    given = ["suggest", models / "multi-label", tmp_path / "pool.jsonl", "-n", 5]
    code, _, err = run_bertcli(*given, "--output", tmp_path / "next.csv")
    assert (code, err) == (0, "")
    rows = csv.DictReader(io.StringIO((tmp_path / "next.csv").read_text()))
    assert {row["text"] for row in rows} == texts


def test_a_column_named_probabilities_stays_as_it_is(run_bertcli, models, tmp_path):
    (tmp_path / "pool.csv").write_text("text,probabilities\nthe cat sat,0.93\n")
    given = ["suggest", models / "multi-label", tmp_path / "pool.csv", "-n", 1]
    code, _, err = run_bertcli(*given, "--output", tmp_path / "next.csv")
    assert (code, err) == (0, "")
    (row,) = csv.DictReader(io.StringIO((tmp_path / "next.csv").read_text()))
    assert "probabilities.0" not in row


def test_near_copies_are_never_both_suggested(run_bertcli, models, tmp_path):
    rows = [{"text": text, "of": number} for number, text in enumerate(TEXTS)]
    copies = [{"text": f"{text.upper()} !", "of": number} for number, text in enumerate(TEXTS)]
    path = tmp_path / "pool.jsonl"
    path.write_text("\n".join(map(json.dumps, rows + copies)))
    code, out, err = run_bertcli("suggest", models / "multi-label", path, "-n", 500, "--json")
    assert code == 0
    found = [json.loads(line)["of"] for line in out.splitlines()]
    assert len(set(found)) == len(found) > 10
    assert f"{len(found)} rows, not 500: there are no more that differ from each other" in err


def test_rows_with_a_label_or_without_a_text_are_left_out(run_bertcli, models, tmp_path):
    path = tmp_path / "pool.csv"
    path.write_text("premise,hypothesis,gold\na cat,a dog,yes\nshe sat,he ran,\na mat,the dark night, \n,,\n")
    code, out, err = run_bertcli("suggest", models / "classification", path, "-n", 2, "--json")
    assert code == 0
    assert {json.loads(line)["premise"] for line in out.splitlines()} == {"she sat", "a mat"}
    assert "left out: 1 row with a label already (column 'gold')\n" in err
    assert "left out: 1 row without a text\n" in err
    path.write_text("premise,hypothesis,gold\na cat,a dog,yes\n")
    code, out, err = run_bertcli("suggest", models / "classification", path)
    assert (code, out) == (2, "")
    assert "error: no row is left to label: give a file with texts whose label is not there, or empty" in err


def test_entities_are_written_for_a_tool(run_bertcli, models, pool):
    with open(pool, "a") as file:
        file.write(json.dumps({"id": 999, "text": "Rome was dark", "label": [[0, 4, "LOC"]]}) + "\n")
    code, out, err = run_bertcli("suggest", models / "tokens", pool, "-n", 4, "--annotations", "doccano")
    assert code == 0
    assert "left out: 1 row with a label already (their spans)\n" in err
    assert all(set(json.loads(line)) >= {"id", "text", "label"} for line in out.splitlines())
    assert len(out.splitlines()) == 4


@pytest.mark.parametrize(
    ("kind", "options", "message"),
    [
        ("regression", ["--text", "id", "--text", "text"], "a regression model gives no probabilities"),
        ("vectors", [], "its answers are vectors"),
        ("multi-label", ["--output", "a.txt"], "the suffix selects the format"),
        ("multi-label", ["--output", "a.csv", "--json"], "--json writes to standard output"),
        ("multi-label", ["--annotations", "doccano"], "is for models that find entities"),
        ("multi-label", ["--annotations", "word"], "--annotations word: expected"),
        ("multi-label", ["-n", "0"], "-n"),
        ("multi-label", ["--text", "title"], "title"),
    ],
)
def test_what_cannot_be_done(run_bertcli, models, pool, kind, options, message):
    code, out, err = run_bertcli("suggest", models / kind, pool, *options)
    assert (code, out) == (2, "")
    assert message in err
    assert "Traceback" not in err
