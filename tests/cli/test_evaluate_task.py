"""`bertcli evaluate --data`: loss and metrics of every task, and the rows answered wrongly."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest

from tests.folders.folders import saved_model, saved_task

CONTEXT = "the cat sat on the mat"


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a model of every task, and a labeled file for each."""
    folder = tmp_path_factory.mktemp("models")
    for kind in ("classification", "multi-label", "regression", "tokens", "questions", "choices"):
        saved_task(folder / kind, kind, max_positions=128)
    saved_model(folder / "pretrained")
    pairs = "".join(f"the cat\ta dog{' ran' * n}\t{'no' if n % 2 else 'yes'}\n" for n in range(6))
    (folder / "classification.tsv").write_text("premise\thypothesis\tgold\n" + pairs)
    (folder / "multi-label.tsv").write_text("text\tcolors\nthe cat\tred,blue\na dog\t\n")
    (folder / "regression.tsv").write_text("a\tb\tscore\nthe\tcat\t1.5\na\tdog\t7\nit\tran\t3\n")
    (folder / "tokens.conll").write_text("the\tO\ncat\tB-LOC\n\na\tO\n")
    answer = {"text": "cat sat", "answer_start": 4}
    asked = [{"id": str(n), "question": "Who" * n + "?", "answers": [answer]} for n in range(3)]
    squad = {"data": [{"paragraphs": [{"context": CONTEXT, "qas": asked}]}]}
    (folder / "questions.json").write_text(json.dumps(squad))
    (folder / "choices.tsv").write_text("story\tone\ttwo\tright\nit was\tdark\tthe cat\t1\nhe\tran\tsat\t0\n")
    return folder


FILES = {
    "classification": ("classification.tsv", []),
    "multi-label": ("multi-label.tsv", ["--label", "colors"]),
    "regression": ("regression.tsv", ["--label", "score"]),
    "tokens": ("tokens.conll", []),
    "questions": ("questions.json", []),
    "choices": ("choices.tsv", ["--label", "right"]),
}


@pytest.mark.parametrize(
    ("kind", "task", "rows", "metrics"),
    [
        ("classification", "classification", 6, {"accuracy", "macro_f1"}),
        ("multi-label", "classification", 2, {"macro_f1", "subset_accuracy"}),
        ("regression", "regression", 3, {"pearson", "spearman"}),
        ("tokens", "token-classification", 2, {"precision", "recall", "f1"}),
        ("questions", "question-answering", 3, {"exact_match", "f1"}),
        ("choices", "multiple-choice", 2, {"accuracy"}),
    ],
)
def test_every_task_has_its_metrics(run_bertcli, models, kind, task, rows, metrics):
    file, options = FILES[kind]
    code, out, err = run_bertcli("evaluate", models / kind, "--data", models / file, *options, "--json")
    columns = f"{models / file}: words in column 0, tags in column 1 of 2, counted from 0\n"
    assert (code, err) == (0, columns if kind == "tokens" else "")
    measured = json.loads(out)
    assert (measured["task"], measured["rows"]) == (task, rows)
    assert measured["loss"] > 0
    assert metrics <= set(measured)
    code, out, _ = run_bertcli("evaluate", models / kind, "--data", models / file, *options)
    assert code == 0
    assert out.splitlines()[0].split() == ["task", task]
    assert f"loss{' ' * 24}{measured['loss']:.4f}" in out


@pytest.mark.parametrize("kind", FILES)
def test_the_wrong_cases_are_those_that_predict_answers_so(run_bertcli, models, tmp_path, kind):
    file, options = FILES[kind]
    wrong = tmp_path / "wrong.jsonl"
    arguments = ["evaluate", models / kind, "--data", models / file, *options, "--wrong", wrong, "--json"]
    code, out, _ = run_bertcli(*arguments)
    assert code == 0
    cases = [json.loads(line) for line in wrong.read_text().splitlines()]
    _, predicted, _ = run_bertcli("predict", models / kind, "--input", models / file)
    answers = [json.loads(line) for line in predicted.splitlines()]
    assert all(set(case) == {"where", "columns", "prediction", "right"} for case in cases)
    assert all(file in case["where"] for case in cases)
    for case in cases:
        assert any(case["prediction"].items() <= answer.items() for answer in answers)
    scores = json.loads(out)
    share_right = 1 - len(cases) / len(answers)
    if kind in ("classification", "choices"):
        assert scores["accuracy"] == pytest.approx(share_right)
    if kind == "questions":
        assert scores["exact_match"] == pytest.approx(100 * share_right)
        assert {tuple(case["right"]) for case in cases} <= {("cat sat",)}
    if kind == "multi-label":
        assert scores["subset_accuracy"] == pytest.approx(share_right)
    if kind == "tokens":
        assert all(case["right"] in (["O", "B-LOC"], ["O"]) for case in cases)


@pytest.mark.parametrize(("name", "separator"), [("wrong.csv", ","), ("wrong.tsv", "\t")])
def test_the_wrong_cases_as_a_table_are_those_of_the_json_lines(
    run_bertcli, models, tmp_path, name, separator
):
    rows = "".join(f"=1+{n}\tthe cat\t{label}\n" for n in range(3) for label in ("yes", "no"))
    (tmp_path / "rows.tsv").write_text(f"premise\thypothesis\tgold\n{rows}")
    given = ["evaluate", models / "classification", "--data", tmp_path / "rows.tsv", "--wrong"]
    assert run_bertcli(*given, tmp_path / "wrong.jsonl")[0] == 0
    code, _, err = run_bertcli(*given, tmp_path / name)
    cases = [json.loads(line) for line in (tmp_path / "wrong.jsonl").read_text().splitlines()]
    with open(tmp_path / name, newline="", encoding="utf-8") as file:
        table = list(csv.DictReader(file, delimiter=separator))
    assert (code, len(cases) > 0) == (0, True)
    assert f"{len(cases)} cells begin like a formula" in err
    for case, row in zip(cases, table, strict=True):
        assert row["premise"] == f"'{case['columns']['premise']}"
        found = (row["where"], row["gold"], row["label"], row["right"])
        assert found == (
            case["where"],
            case["right"],
            case["prediction"]["label"],
            case["right"],
        )


def test_suspect_labels_in_a_table_have_the_texts_as_they_are(run_bertcli, models, tmp_path):
    rows = "".join(f"@ann {n}\tthe cat\t{label}\n" for n in range(3) for label in ("yes", "no"))
    (tmp_path / "rows.tsv").write_text(f"premise\thypothesis\tgold\n{rows}")
    given = ["evaluate", models / "classification", "--data", tmp_path / "rows.tsv", "--suspect-labels"]
    code, _, err = run_bertcli(*given, tmp_path / "suspects.csv")
    assert (code, "formula" in err) == (0, False)
    with open(tmp_path / "suspects.csv", newline="", encoding="utf-8") as file:
        found = [row["premise"] for row in csv.DictReader(file)]
    assert found
    assert all(text.startswith("@ann ") for text in found)


def test_suspect_labels_of_a_file(run_bertcli, models, tmp_path):
    given = ["evaluate", models / "classification", "--data", models / "classification.tsv", "--json"]
    code, out, err = run_bertcli(*given, "--suspect-labels", tmp_path / "suspects.jsonl")
    found = [json.loads(line) for line in (tmp_path / "suspects.jsonl").read_text().splitlines()]
    assert (code, json.loads(out)["rows"], len(found) > 0) == (0, 6, True)
    assert f"{len(found)} rows with a likely wrong label are in {tmp_path / 'suspects.jsonl'}" in err
    assert all(each["given"] == each["columns"]["gold"] != each["suggested"] for each in found)
    assert [each["score"] for each in found] == sorted(each["score"] for each in found)
    assert run_bertcli(*given, "--suspect-labels", tmp_path / "suspects.csv")[0] == 0
    with open(tmp_path / "suspects.csv", newline="", encoding="utf-8") as file:
        table = list(csv.DictReader(file))
    assert [(row["where"], row["gold"], row["given"]) for row in table] == [
        (each["where"], each["given"], each["given"]) for each in found
    ]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["tokens", "--data", "tokens.conll"], "--suspect-labels: is for type: classification"),
        (["classification"], "is no run with folds that have ended"),
        (["classification", "--skip-bad"], "--skip-bad: only with --data or --corpus; leave it out"),
        (["pretrained", "--corpus", "classics"], "--suspect-labels: only with --data; leave it out"),
    ],
)
def test_suspect_labels_that_cannot_be_found(run_bertcli, models, tmp_path, arguments, message):
    kind, *others = [models / each if each == "tokens.conll" else each for each in arguments]
    code, out, err = run_bertcli("evaluate", models / kind, *others, "--suspect-labels", tmp_path / "a.csv")
    assert (code, out) == (2, "")
    assert message in err
    assert not (tmp_path / "a.csv").exists()


def test_bad_rows_are_an_error_or_left_out(run_bertcli, models, tmp_path):
    path = tmp_path / "rows.tsv"
    path.write_text("premise\thypothesis\tgold\nthe\tcat\tyes\nthe\t\tno\n")
    arguments = ["evaluate", models / "classification", "--data", path, "--json"]
    code, _, err = run_bertcli(*arguments)
    assert code == 2
    assert "line 3: the text is empty" in err
    code, out, err = run_bertcli(*arguments, "--skip-bad")
    assert (code, json.loads(out)["rows"]) == (0, 1)
    assert "left out 1 of 2 rows" in err


def test_a_model_that_is_no_better_than_the_commonest_label_is_said(run_bertcli, models, tmp_path):
    path = tmp_path / "rows.tsv"
    path.write_text("premise\thypothesis\tgold\n" + "the\tcat\tyes\n" * 9 + "a\tdog\tno\n")
    _, out, _ = run_bertcli("evaluate", models / "classification", "--data", path)
    assert "\nwarning: accuracy 0." in out
    assert ", which is no better than always answering 'yes' (0.9): nothing useful was learned" in out
    _, out, _ = run_bertcli("evaluate", models / "classification", "--data", path, "--json")
    verdict = json.loads(out)["verdict"]
    assert (verdict["better"], verdict["baseline"]) == (False, {"accuracy": 0.9})


def test_rows_that_were_cut_are_counted(run_bertcli, models, tmp_path):
    path = tmp_path / "rows.tsv"
    path.write_text(f"premise\thypothesis\tgold\nthe\tcat\tyes\n{'cat ' * 200}\ta\tno\n")
    _, _, err = run_bertcli("evaluate", models / "classification", "--data", path)
    assert err == "1 of 2 rows were longer than the model reads, and were cut\n"


@pytest.mark.parametrize(
    ("model", "arguments", "message"),
    [
        ("classification", [], "give one of --corpus FILES (the losses of a pretrained model on text) and"),
        ("classification", ["--data", "D", "--corpus", "classics"], "give one of --corpus FILES"),
        ("classification", ["--corpus", "classics"], "is fine-tuned for classification; measure it on a lab"),
        (
            "pretrained",
            ["--data", "D"],
            "is not fine-tuned for a task; a pretrained model is measured on text",
        ),
        ("classification", ["--data", "D", "--batches", "3"], "--batches: only with --corpus; leave it out"),
        ("pretrained", ["--corpus", "classics", "--label", "x"], "--label: only with --data; leave it out"),
        ("classification", ["--data", "D", "--label", "golden"], "no column 'golden'; did you mean 'gold'?"),
        ("classification", ["--data", "D", "--wrong", "w.txt"], "w.txt: the suffix selects the format"),
        ("classification", ["--data", "nowhere.tsv"], "nowhere.tsv: no such file"),
        (
            "classification",
            ["--data", "D", "--text", "gold", "--text", "hypothesis", "--label", "premise"],
            "labels that the model does not learn",
        ),
    ],
)
def test_bad_input_exits_2_with_its_message_alone(run_bertcli, models, model, arguments, message):
    given = [str(models / "classification.tsv") if word == "D" else word for word in arguments]
    code, out, err = run_bertcli("evaluate", models / model, *given)
    assert (code, out) == (2, "")
    assert err.startswith("error: ")
    assert message in err
