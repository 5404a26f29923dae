"""From an export of an annotation tool to answers in it, by the commands that a user gives."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml

from tests.finetunes import write_model
from tests.small_runs import run_cli
from tests.tasks.reading import write_jsonl

PEOPLE, PLACES = ("Mia", "Ali Khan", "Bo"), ("Oslo", "New York", "Rome")


def write_export(path: Path, rows: int = 30) -> Path:
    """An export of doccano, with a span inside a word and a span inside another."""
    found = []
    for number in range(rows):
        person, place = PEOPLE[number % 3], PLACES[number // 3 % 3]
        text = f"{'🎉 ' * (number % 2)}{person} lives in {place}, {number}."
        labels = [
            (person, "PER"),
            (place, "LOC"),
            *([("ive", "X"), (person[1:], "X")] if number == 4 else []),
        ]
        starts = [len(text[: text.index(part)].encode("utf-16-le")) // 2 for part, _ in labels]
        spans = [[at, at + len(part), label] for at, (part, label) in zip(starts, labels, strict=True)]
        found.append({"id": number, "text": text, "label": spans, "Comments": []})
    return write_jsonl(path, *found)


@pytest.mark.usefixtures("init_here")
def test_an_export_is_learned_and_answered(tmp_path: Path) -> None:
    write_export(tmp_path / "export.jsonl")
    model = write_model(tmp_path / "bert")
    done = run_cli("init", "export.jsonl", "--model", model, "--output", "x.yaml", "--minutes", 0.2)
    assert done.returncode == 0, done.stderr
    config = yaml.safe_load((tmp_path / "x.yaml").read_text())
    task = config["task"]
    assert [task[key] for key in ("format", "span_ends", "overlaps")] == ["spans", "widen", "longest"]
    assert "2 of 62 spans begin or end inside a word" in done.stderr

    done = run_cli("check-data", "x.yaml", "--set", "task.span_ends=refuse")
    assert done.returncode == 1
    assert "the run would fail: " in done.stdout
    assert "set task.span_ends: widen to take whole words" in done.stdout
    assert "spans begin or end inside a word (task.span_ends: refuse)" in done.stdout

    done = run_cli("finetune", "x.yaml", "--set", "training.epochs=1", "--set", "training.device=cpu")
    assert done.returncode == 0, done.stderr
    kept = json.loads((tmp_path / "runs/export/model/config.json").read_text())
    assert '"words": "tokenizer"' in json.dumps(kept)

    scores = run_cli("evaluate", "runs/export", "--data", "export.jsonl", "--json")
    assert json.loads(scores.stdout)["rows"] == 30
    refused = run_cli("evaluate", "runs/export", "--data", "export.jsonl", "--overlaps", "refuse")
    assert refused.returncode == 2
    assert "give --overlaps longest to keep the longest span" in refused.stderr

    (tmp_path / "new.txt").write_text("Mia lives in Oslo 🎉.\n\nRome\n", encoding="utf-8")
    answers = run_cli("predict", "runs/export", "--input", "new.txt", "--json").stdout.splitlines()
    assert [set(json.loads(line)) for line in answers] == [{"text", "entities"}] * 3
    lines = run_cli("predict", "runs/export", "--input", "new.txt", "--annotations", "prodigy").stdout
    for answer, line in zip(answers, lines.splitlines(), strict=True):
        spans = [(each["start"], each["end"], each["label"]) for each in json.loads(line)["spans"]]
        entities = json.loads(answer)["entities"]
        assert spans == [(each["start"], each["end"], each["type"]) for each in entities]
    both = run_cli("predict", "runs/export", "Mia", "--annotations", "prodigy", "--json")
    assert (both.returncode, both.stderr) == (
        2,
        "error: give one of --tsv, --csv, --json and --annotations\n",
    )

    folder = tmp_path / "brat"
    done = run_cli(
        "predict", "runs/export", "--input", "new.txt", "--annotations", "brat", "--output", folder
    )
    assert done.returncode == 0, done.stderr
    assert len(list(folder.glob("*.ann"))) == 3
    done = run_cli("report", "runs/export", "--attributions")
    assert done.returncode == 0, done.stderr


def test_a_folder_of_brat_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    notes = tmp_path / "notes"
    notes.mkdir()
    for number in range(8):
        (notes / f"{number}.txt").write_text(f"Mia {number} lives.\n")
        (notes / f"{number}.ann").write_text("T1\tPER 0 3\tMia\n")
    done = run_cli("init", "notes", "--output", "x.yaml")
    assert done.returncode == 0, done.stderr
    task = yaml.safe_load((tmp_path / "x.yaml").read_text())["task"]
    assert {key: task[key] for key in ("type", "format", "train")} == {
        "type": "token-classification",
        "format": "spans",
        "train": "notes",
    }
