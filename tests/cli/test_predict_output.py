"""Where the answers of `bertcli predict` go: tables, files, pipes, devices, and a disk that is full."""

from __future__ import annotations

import csv
import io
import json
import os
import subprocess
import sys
import time
from typing import Any

import pytest

from tests.small_runs import run_process, run_warm, without_waiting
from tests.warm import Warm


def rows(out: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in out.splitlines()]


@pytest.mark.parametrize(("option", "separator"), [("--tsv", "\t"), ("--csv", ",")])
def test_a_table_of_answers_runs_no_formula(run_bertcli, models, tmp_path, option, separator):
    texts = ['=HYPERLINK("x")', "+49 30", "-1.5", "-x", "@SUM(A1)", "-", "1=1", "=\nHYPERLINK(1)"]
    (tmp_path / "rows.jsonl").write_text("".join(json.dumps({"text": text}) + "\n" for text in texts))
    given = ["predict", models / "multi-label", "--text", "text", "--input", tmp_path / "rows.jsonl"]
    code, out, err = run_bertcli(*given, option)
    cells = [row["text"] for row in csv.DictReader(io.StringIO(out), delimiter=separator)]
    assert (code, cells) == (
        0,
        ["'" + texts[0], "'+49 30", "-1.5", "'-x", "'@SUM(A1)", "-", "1=1", "'" + texts[-1]],
    )
    assert err.startswith("5 cells begin like a formula (=, +, -, @, tab): they are written with a '")
    _, out, err = run_bertcli(*given)
    assert ([row["text"] for row in rows(out)], err) == (texts, "")


@pytest.mark.parametrize("name", ["answers.jsonl", "answers.tsv", "answers.csv"])
def test_an_output_is_the_old_file_until_it_is_whole(run_bertcli, models, tmp_path, name):
    answers, elsewhere = tmp_path / name, tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "real").write_text("old")
    (elsewhere / "real").chmod(0o640)
    answers.symlink_to(elsewhere / "real")
    foreign = tmp_path / f".{name}.partial"
    foreign.write_text("not ours")
    (tmp_path / "rows.tsv").write_text("text\tid\nthe cat\t1\na dog\n")
    given = ["predict", models / "multi-label", "--output", answers]
    code, _, _ = run_bertcli(*given, "--input", tmp_path / "rows.tsv")
    assert (code, answers.read_text()) == (2, "old")
    code, _, err = run_bertcli(*given, "the cat")
    assert code == 0, err
    assert "the cat" in answers.read_text()
    assert answers.is_symlink()
    assert (elsewhere / "real").stat().st_mode & 0o777 == 0o640
    assert foreign.read_text() == "not ours"
    assert [path.name for path in elsewhere.iterdir()] == ["real"]


def test_a_kill_leaves_the_old_output(models, tmp_path):
    processes = {}
    for verb in ("predict", "embed"):
        folder = tmp_path / verb
        folder.mkdir()
        (folder / "answers.jsonl").write_text("old")
        command = (verb, models / "multi-label", "--output", folder / "answers.jsonl")
        process = processes[folder] = Warm(*command, stdin=subprocess.PIPE)
        assert process.stdin
        process.stdin.write("the cat\n" * 3000)  # more than is read ahead; and the end of it never comes
        process.stdin.flush()
    for folder, process in processes.items():
        deadline = time.monotonic() + 120
        while not any(path.stat().st_size > 3 for path in folder.iterdir()):
            assert time.monotonic() < deadline
            time.sleep(0.02)
        process.kill()
        process.communicate()
        assert (folder / "answers.jsonl").read_text() == "old"


def test_a_pipe_and_a_device_are_written_to_as_they_are(run_bertcli, models, tmp_path):
    fifo, null = tmp_path / "fifo.jsonl", tmp_path / "null.jsonl"
    os.mkfifo(fifo)
    null.symlink_to("/dev/null")
    reader = subprocess.Popen(["cat", fifo], stdout=subprocess.PIPE, text=True)
    code, _, _ = run_bertcli("predict", models / "multi-label", "the cat", "--output", fifo)
    assert (code, [row["text"] for row in rows(reader.communicate()[0])]) == (0, ["the cat"])
    assert run_bertcli("predict", models / "multi-label", "the cat", "--output", null)[0] == 0
    assert null.is_symlink()
    assert fifo.is_fifo()


def test_a_pipe(models):
    done = run_warm("predict", models / "classification", input="the cat\ta dog\nit\tran\n")
    assert [row["text_b"] for row in rows(done.stdout)] == ["a dog", "ran"]
    assert done.stderr == ""


def test_a_reader_that_has_seen_enough(models):
    command = f"{sys.executable} -m bertcli predict {models / 'multi-label'} --json | head -n 1"
    texts = "the cat\n" * 3000
    done = subprocess.run(command, shell=True, input=texts, capture_output=True, text=True, check=True)
    assert rows(done.stdout)[0]["text"] == "the cat"
    assert without_waiting(done.stderr) == ""


def test_with_standard_output_closed_the_answers_go_nowhere(models):
    command = ("predict", models / "multi-label", "the cat")
    done = run_process(*command, preexec_fn=lambda: os.close(1))
    assert (done.returncode, done.stderr) == (0, "")


def test_with_standard_input_closed_a_text_is_asked_for(run_bertcli, models, monkeypatch):
    monkeypatch.setattr("sys.stdin", None)
    code, _, err = run_bertcli("predict", models / "multi-label")
    assert code == 2
    assert err.startswith("error: ")


def test_the_suffix_of_the_output_says_its_format(run_bertcli, models, tmp_path):
    arguments = ["predict", models / "multi-label", "the cat", "a dog", "--output"]
    for name in ("answers.jsonl", "answers.tsv", "answers.csv"):
        code, out, _ = run_bertcli(*arguments, tmp_path / name)
        assert (code, out) == (0, "")
    assert [row["text"] for row in rows((tmp_path / "answers.jsonl").read_text())] == ["the cat", "a dog"]
    header, first, _ = (tmp_path / "answers.tsv").read_text().splitlines()
    assert header.split("\t")[:3] == ["text", "label", "probabilities.red"]
    assert first.startswith("the cat\t")
    _, out, _ = run_bertcli(*arguments[:-1], "--tsv")
    assert out == (tmp_path / "answers.tsv").read_text()
    _, out, _ = run_bertcli(*arguments[:-1], "--csv")
    assert out == (tmp_path / "answers.csv").read_text()
    tables = [
        list(csv.DictReader(io.StringIO((tmp_path / name).read_text()), delimiter=separator))
        for name, separator in (("answers.tsv", "\t"), ("answers.csv", ","))
    ]
    assert tables[0] == tables[1]
    code, _, err = run_bertcli(*arguments[:-1], "--csv", "--tsv")
    assert (code, err) == (2, "error: give one of --tsv, --csv, --json and --annotations\n")
    code, _, err = run_bertcli(*arguments, tmp_path / "answers.tsv", "--csv")
    assert (code, "the suffix selects the format; give one of .csv" in err) == (2, True)


def test_a_csv_of_answers_is_read_back_with_commas_quotes_and_lines_in_it(run_bertcli, models, tmp_path):
    texts = ['one, "two"', "three\nfour", "five"]
    table = csv.writer(given := io.StringIO(), lineterminator="\n")
    table.writerows([["id", "text"], *enumerate(texts)])
    (tmp_path / "rows.csv").write_text(given.getvalue())
    given = ["--input", tmp_path / "rows.csv", "--output", tmp_path / "answers.csv"]
    assert run_bertcli("predict", models / "multi-label", *given) == (0, "", "")
    with open(tmp_path / "answers.csv", newline="", encoding="utf-8") as file:
        answers = list(csv.DictReader(file))
    assert [(row["id"], row["text"]) for row in answers] == [(str(n), text) for n, text in enumerate(texts)]
    assert list(answers[0])[:4] == ["id", "text", "label", "probabilities.red"]
