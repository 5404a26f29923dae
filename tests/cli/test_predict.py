"""`bertcli predict`: every task, from the command line, files and pipes, in every form of output."""

from __future__ import annotations

import gzip
import io
import json
import math
from typing import Any

import pytest

from tests.folders.folders import LABELS, change_config, saved_model, saved_task


def rows(out: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in out.splitlines()]


def test_texts_of_the_command_line_in_json(run_bertcli, models):
    code, out, err = run_bertcli("predict", models / "multi-label", "The cat.", "A dog", "--json")
    assert (code, err) == (0, "")
    first, second = rows(out)
    assert (first["text"], second["text"]) == ("The cat.", "A dog")
    assert list(first) == ["text", "label", "probabilities"]
    assert list(first["probabilities"]) == list(LABELS["multi-label"])


@pytest.mark.parametrize(
    ("kind", "texts", "fields"),
    [
        ("classification", ["The cat.", "A dog."], {"text_a", "text_b", "label", "probabilities"}),
        ("regression", ["The cat.", "A dog."], {"text_a", "text_b", "value"}),
        ("tokens", ["The cat sat."], {"text", "entities", "tags"}),
        (
            "questions",
            ["Who sat?", "The cat sat."],
            {"question", "context", "answer", "start", "end", "score"},
        ),
        ("choices", ["It was", "dark", "he"], {"text", "choices", "choice", "probabilities"}),
    ],
)
def test_every_task(run_bertcli, models, kind, texts, fields):
    code, out, _ = run_bertcli("predict", models / kind, *texts, "--json")
    assert code == 0
    (row,) = rows(out)
    assert set(row) == fields
    for entity in row.get("entities", []):
        assert row["text"][entity["start"] : entity["end"]] == entity["text"]
    if "context" in row:
        assert row["context"][row["start"] : row["end"]] == row["answer"]
    code, out, _ = run_bertcli("predict", models / kind, *texts)
    assert code == 0
    with pytest.raises(json.JSONDecodeError):
        rows(out)


def test_a_pipe_of_objects_is_answered_as_their_texts_are(
    run_bertcli, models, monkeypatch: pytest.MonkeyPatch
) -> None:
    texts = ["The cat.", "A dog"]
    piped = "".join(json.dumps({"text": text}) + "\n" for text in texts)
    asked = (["predict", models / "multi-label"], ["embed", models / "vectors"])
    for command in (*asked, ["similarity", models / "vectors", "The cat."]):
        found = []
        for content, options in ((piped, ["--format", "jsonl"]), ("\n".join(texts), [])):
            monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(content.encode())))
            json_ = ["--json"] if command[0] != "embed" else []
            code, out, err = run_bertcli(*command, "--input", "-", *json_, *options)
            assert (code, err) == (0, "")
            found.append(rows(out))
        assert found[0] == found[1]


@pytest.mark.parametrize(
    ("kind", "texts", "answers"),
    [
        ("multi-label", ["The cat.", "  ", "A dog"], 3),
        ("tokens", ["", "A dog"], 2),
        ("classification", ["The cat.", ""], 1),
        ("questions", ["Who?", " "], 1),
        ("choices", ["It was", "dark", ""], 1),
    ],
)
def test_an_empty_text_is_answered_as_in_a_file_and_named(run_bertcli, models, kind, texts, answers):
    code, out, err = run_bertcli("predict", models / kind, *texts, "--json")
    assert (code, len(rows(out))) == (0, answers)
    number = next(n for n, text in enumerate(texts, start=1) if not text.strip())
    first = f"the first is text {number}"
    assert err == f"the command line: 1 of {len(texts)} texts are empty; {first}\n"


def test_texts_of_the_command_line_are_answered_readably(run_bertcli, models):
    _, out, _ = run_bertcli("predict", models / "classification", "The cat.", "A dog.")
    _, json_, _ = run_bertcli("predict", models / "classification", "The cat.", "A dog.", "--json")
    (row,) = rows(json_)
    assert out == f"{row['probabilities'][row['label']]:7.2%}  {row['label']}  The cat.  |  A dog.\n"


def test_files_of_every_format_give_their_columns_and_answers_in_order(run_bertcli, models, tmp_path):
    texts = [("the cat sat " * (n % 5 + 1), "a dog " * (n % 3 + 1)) for n in range(40)]
    tsv = tmp_path / "rows.tsv"
    tsv.write_text(
        "id\tpremise\thypothesis\n" + "".join(f"{n}\t{a}\t{b}\n" for n, (a, b) in enumerate(texts))
    )
    csv = tmp_path / "rows.csv.gz"
    csv.write_bytes(gzip.compress(tsv.read_bytes().replace(b"\t", b",")))
    jsonl = tmp_path / "rows.jsonl"
    objects = [{"id": str(n), "premise": a, "hypothesis": b} for n, (a, b) in enumerate(texts)]
    jsonl.write_text("".join(json.dumps(each) + "\n" for each in objects))
    outputs = []
    for path in (tsv, csv, jsonl):
        code, out, err = run_bertcli("predict", models / "classification", "--input", path, "--batch-size", 3)
        assert (code, err) == (0, "")
        outputs.append(out)
    assert outputs[0] == outputs[1] == outputs[2]
    assert [{k: row[k] for k in ("id", "premise", "hypothesis")} for row in rows(outputs[0])] == objects
    assert all(row["label"] in LABELS["classification"] for row in rows(outputs[0]))


def test_a_file_for_a_model_whose_labels_are_columns_needs_none_of_them(run_bertcli, tmp_path):
    saved_task(tmp_path / "model", "multi-label")
    settings = json.loads((tmp_path / "model" / "config.json").read_text())["bertcli_task"]
    change_config(tmp_path / "model", bertcli_task=settings | {"label": list(LABELS["multi-label"])})
    path = tmp_path / "rows.csv"
    path.write_text("text\nthe cat\na dog\n")
    for command in (["predict", tmp_path / "model", "--input"], ["suggest", tmp_path / "model", "--json"]):
        code, out, err = run_bertcli(*command, path)
        assert code == 0, err
        assert {row["text"] for row in rows(out)} == {"the cat", "a dog"}


def test_a_text_a_line_and_an_answer_for_each(run_bertcli, models, tmp_path):
    path = tmp_path / "texts.txt"
    path.write_text("\nthe cat\n\na dog\n")
    for kind in ("multi-label", "tokens"):
        _, out, err = run_bertcli("predict", models / kind, "--input", path)
        assert [row["text"] for row in rows(out)] == ["", "the cat", "", "a dog"]
        assert err.startswith(f"{path}: the text is empty in 2 of 4 rows:")


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("rows.csv", 'text\nthe cat\n""\na dog\n\n'),  # as pandas writes an empty cell, and as others do
        ("rows.tsv", "text\nthe cat\n\na dog\n\n"),
        ("rows.tsv", 'text\n"the cat"\n\n"a dog"\n""\n'),
        ("rows.tsv", "id\ttext\n1\tthe cat\n\t\n3\ta dog\n4\t\n"),
        ("rows.jsonl", '{"text": "the cat"}\n{"text": ""}\n{"text": "a dog"}\n{"text": null}\n'),
    ],
)
def test_each_row_of_a_file_has_an_answer(run_bertcli, models, tmp_path, name, content):
    path = tmp_path / name
    path.write_text(content)
    for kind in ("multi-label", "tokens"):
        given = ["--input", path, "--text", "text"]
        code, out, err = run_bertcli("predict", models / kind, *given)
        assert (code, [row["text"] or "" for row in rows(out)]) == (0, ["the cat", "", "a dog", ""])
        assert f"{path}: the text is empty in 2 of 4 rows" in err
    code, out, err = run_bertcli("embed", models / "tokens", *given)
    assert (code, [row["text"] for row in rows(out)]) == (0, ["the cat", "", "a dog", ""])
    first, *_, empty = [row["vector"] for row in rows(out)]
    assert len(empty) == len(first)
    assert all(map(math.isfinite, empty))  # of [CLS] and [SEP]


def test_blank_lines_between_rows_that_cannot_be_blank_are_said(run_bertcli, models, tmp_path):
    for name, content in (
        ("rows.tsv", "id\ttext\n1\tthe cat\n\n2\ta dog\n\n"),
        ("rows.jsonl", '{"text": "the cat"}\n\n{"text": "a dog"}\n\n'),
    ):
        (tmp_path / name).write_text(content)
        code, out, err = run_bertcli(
            "predict", models / "multi-label", "--input", tmp_path / name, "--text", "text"
        )
        assert (code, len(rows(out))) == (0, 2)
        assert err.startswith(
            f"{tmp_path / name}: skipped 1 blank line between the rows; they have no prediction"
        )


def test_conll_and_squad(run_bertcli, models, tmp_path):
    conll = tmp_path / "posts.conll"
    conll.write_text("the\tO\ncat\tO\n\na\tO\n")
    _, out, _ = run_bertcli("predict", models / "tokens", "--input", conll)
    assert [row["text"] for row in rows(out)] == ["the cat", "a"]
    squad = tmp_path / "squad.json"
    questions = [{"id": "q1", "question": "Who?", "answers": []}]
    squad.write_text(json.dumps({"data": [{"paragraphs": [{"context": "The cat sat.", "qas": questions}]}]}))
    _, out, _ = run_bertcli("predict", models / "questions", "--input", squad)
    (row,) = rows(out)
    assert (row["id"], row["question"], row["context"]) == ("q1", "Who?", "The cat sat.")


def test_what_was_cut_is_said(run_bertcli, models):
    long = "the cat " * 100
    _, _, err = run_bertcli("predict", models / "multi-label", long, "a dog", "--json")
    assert err == "1 of 2 rows were longer than the model reads, and were cut\n"


def test_a_model_that_bertcli_did_not_write_reads_pairs_on_request(run_bertcli, models, tmp_path):
    saved_task(tmp_path / "foreign", "classification", max_positions=128)
    change_config(tmp_path / "foreign", bertcli_task="absent")
    pair = ["the cat", "a dog"]
    _, own, _ = run_bertcli("predict", models / "classification", *pair, "--json")
    _, foreign, _ = run_bertcli("predict", tmp_path / "foreign", *pair, "--pair", "--json")
    assert foreign == own
    (tmp_path / "rows.tsv").write_text("left\tright\nthe cat\ta dog\n")
    columns = ["--pair", "--text", "left", "--text", "1"]
    _, foreign, _ = run_bertcli("predict", tmp_path / "foreign", "--input", tmp_path / "rows.tsv", *columns)
    assert rows(foreign)[0]["probabilities"] == rows(own)[0]["probabilities"]


def test_rows_that_cannot_be_read_are_named_when_all_others_are_answered(run_bertcli, models, tmp_path):
    (tmp_path / "rows.tsv").write_text("text\tid\nthe cat\t1\na dog\nhe ran\t3\n")
    code, out, err = run_bertcli("predict", models / "multi-label", "--input", tmp_path / "rows.tsv")
    assert (code, [row["id"] for row in rows(out)]) == (2, ["1", "3"])
    assert "rows.tsv, line 3: 1 field, not 2 (text, id)" in err


@pytest.mark.parametrize(
    ("kind", "arguments", "message"),
    [
        ("multi-label", ["--input", "FOLDER/empty.tsv"], "empty.tsv: is empty; expected rows of tsv"),
        ("multi-label", ["--input", "FOLDER/empty.txt"], "empty.txt: the text of every row is empty"),
        ("multi-label", ["--input", "ROWS"], "no column 'text'; the columns: a, b"),
        ("multi-label", ["--input", "ROWS", "--text", "a", "--text", "b"], "--text: the model reads one"),
        ("classification", ["--input", "ROWS", "--text", "a"], "--text: the model reads two texts"),
        ("classification", ["one"], "the command line: the model reads a pair of texts"),
        ("multi-label", ["ROWS"], "rows.tsv: is a file, not a text; give it as --input"),
        ("multi-label", ["a", "--output", "FOLDER/none/a.jsonl"], "there is no folder"),
        ("multi-label", ["a", "--output", "FOLDER/a.xlsx"], "give one of .jsonl, .csv, .tsv"),
        ("multi-label", ["a", "--output", "FOLDER/a.jsonl", "--tsv"], "give one of .tsv"),
        ("multi-label", ["a", "--output", "FOLDER/folder.tsv"], "folder.tsv: is a folder; name the file"),
        ("multi-label", ["--input", "ROWS", "--output", "ROWS"], "rows.tsv: is the input file"),
        ("multi-label", ["a", "--tsv", "--json"], "give one of --tsv, --csv, --json and --annotations"),
        ("multi-label", ["a", "--input", "ROWS"], "give the text itself or --input FILE, not both"),
        ("multi-label", ["--input", "FOLDER/row.tsv"], "row.tsv: no such file; did you mean"),
    ],
)  # fmt: skip
def test_bad_input_exits_2_with_its_message_alone(run_bertcli, models, tmp_path, kind, arguments, message):
    (tmp_path / "empty.tsv").write_text("")
    (tmp_path / "empty.txt").write_text("\n")
    (tmp_path / "rows.tsv").write_text("a\tb\nthe\tcat\n")
    (tmp_path / "folder.tsv").mkdir()
    given = [word.replace("FOLDER", str(tmp_path)) for word in arguments]
    given = [str(tmp_path / "rows.tsv") if word == "ROWS" else word for word in given]
    code, out, err = run_bertcli("predict", models / kind, *given)
    assert (code, out) == (2, "")
    assert err.startswith("error: ")
    assert message in err
    assert (tmp_path / "rows.tsv").read_text() == "a\tb\nthe\tcat\n"


def test_a_pretraining_model_is_refused(run_bertcli, tmp_path):
    saved_model(tmp_path)
    code, _, err = run_bertcli("predict", tmp_path, "the cat")
    assert code == 2
    assert "this is a masked language model, not a fine-tuned model; fine-tune it first" in err


def test_answers_below_a_probability_are_undecided(run_bertcli, models) -> None:
    command = ("predict", models / "classification", "The cat.", "A dog.")
    _, out, _ = run_bertcli(*command, "--json")
    (sure,) = rows(out)
    most = max(sure["probabilities"].values())
    for minimum, label, undecided in ((most - 0.01, sure["label"], 0), (most + 0.01, None, 1)):
        code, out, err = run_bertcli(*command, "--json", "--min-probability", str(minimum))
        assert (code, rows(out)) == (0, [sure | {"label": label}])
        assert err == f"{undecided} of 1 rows are undecided: below {minimum:g}\n"
    code, out, _ = run_bertcli(*command, "--min-probability", "0.999")
    assert "undecided" in out
    code, out, err = run_bertcli("predict", models / "regression", "The", "A", "--min-probability", "0.5")
    assert (code, out) == (2, "")
    assert "have no single probability" in err
